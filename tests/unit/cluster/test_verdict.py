"""A job against what the running cluster says: limits, what is down, who is let in."""

from __future__ import annotations

from typing import Any

import pytest

from slurmgen.cluster import generic
from slurmgen.cluster.ask import Ask
from slurmgen.cluster.live.profile import profile_data
from slurmgen.cluster.live.verdict import Verdict, judge
from slurmgen.cluster.profile import Profile
from slurmgen.jobfile.job import JobSpec
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from slurmgen.slurm import directives
from slurmgen.slurm.answers import facts
from slurmgen.slurm.answers.texts import Texts
from slurmgen.slurm.request import Request

CONFIG = """\
ClusterName             = lab
SLURM_VERSION           = 24.11.5
MaxArraySize            = 101
GresTypes               = gpu
PreemptType             = preempt/none
"""
PARTITIONS = """\
PartitionName=gpu
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   Default=YES MaxNodes=1 MaxTime=1-00:00:00 MaxCPUsPerNode=UNLIMITED
   Nodes=g[1-2] State=UP OverSubscribe=NO

PartitionName=h100
   AllowAccounts=big DenyQos=debug
   Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED MaxCPUsPerNode=32
   Nodes=h[1-3] State=UP OverSubscribe=NO

PartitionName=whole
   Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED
   Nodes=g[1-2],h[1-3] State=UP OverSubscribe=EXCLUSIVE

PartitionName=old
   Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED
   Nodes=g1 State=DOWN OverSubscribe=NO

PartitionName=shut
   Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED
   Nodes=g1 State=INACTIVE OverSubscribe=NO
"""


def node(name: str, gpu: str, state: str = "IDLE", features: str = "fast") -> str:
    return (
        f"NodeName={name} Arch=x86_64 CPUTot=64 AvailableFeatures={features} Gres={gpu}\n"
        f"   RealMemory=256000 State={state} ThreadsPerCore=1 TmpDisk=0\n"
    )


NODES = "\n".join(
    [node("g1", "gpu:a100:4"), node("g2", "gpu:a100:4")]
    + [node(f"h{i}", "gpu:h100:8", "IDLE" if i == 1 else "DOWN*") for i in (1, 2, 3)]
)
ACCOUNTS = {
    "associations": (
        "big||normal,week,wide|normal||\nsmall||normal,debug|normal||\n"
        "tiny||normal,debug|debug||\nfew||normal,week||gres/gpu=3|01:00:00\n"
    ),
    "qos": """\
normal||||||||||
debug|00:30:00||gres/gpu=2|||||||
week|7-00:00:00|||node=20160||||4||PartitionTimeLimit
wide||node=2||||||||PartitionMaxNodes
""",
    "user": "me|small\n",
}
ENFORCED = f"{CONFIG}AccountingStorageEnforce = associations,limits,qos\n"


OVER_NODE_TIME = "3 node(s) for 6-00:00:00 are 18-00:00:00 of one, and QOS week allows 14-00:00:00"


def verdict(job: dict[str, Any], **said: Any) -> Verdict:
    texts = {"config": CONFIG, "partitions": PARTITIONS, "nodes": NODES, **said}
    found = facts.read(Texts(**texts))
    spec = JobSpec(command="true", **job)
    plan = resolve(spec, generic.PROFILE)
    request = Request(directives.read(render(plan)).directives)
    live = Profile(**profile_data(found, with_names=True))
    ask = Ask(None, plan.layout, request.gpu_type, request.node_gpus or 0, plan.cpus_per_task)
    return judge(spec, ask, plan.directives, live, found)


def refusals(job: dict[str, Any], **said: Any) -> list[tuple[Any, str, str]]:
    return [(p.key, p.what, p.fix) for p in verdict(job, **said).refusals]


def doubts(job: dict[str, Any], **said: Any) -> list[tuple[Any, str]]:
    found = verdict(job, **said)
    assert found.refusals == []
    return [(p.key, p.what) for p in found.doubts]


def test_a_job_that_fits() -> None:
    job = {"gpus_per_node": "a100:4", "cpus_per_task": 16, "time": "24h"}

    assert verdict(job) == ([], [], "")


@pytest.mark.parametrize(
    ("job", "key", "what", "fix"),
    [
        (
            {"gpus_per_node": "a100:8"},
            "gpus_per_node",
            "8 GPUs per node, and a100 nodes have 4",
            "write gpus_per_node: 4 and more nodes",
        ),
        (
            {"gpus_per_node": "A100:4"},
            "gpus_per_node",
            'lab has no GPU of type "A100"',
            "known types: a100, h100 (upper and lower case differ)",
        ),
        (
            {"gpus_per_node": 4, "time": "25h"},
            "time",
            "time 1-01:00:00 is over the 1-00:00:00 of partition gpu",
            "write time: 1-00:00:00, or partition: whole",
        ),
        (
            {"nodes": 2},
            "nodes",
            "2 nodes, and partition gpu allows 1",
            "write nodes: 1, or partition: whole",
        ),
        (
            {"gpus_per_node": 4, "cpus_per_task": 17},
            "cpus_per_task",
            "68 CPUs per node (4 tasks x 17), and a100 nodes have 64 for jobs",
            "ask for at most 16 CPUs per task",
        ),
        (
            {"cpus_per_task": 65, "partition": "whole"},
            "cpus_per_task",
            "65 CPUs per node (1 tasks x 65), and a100 nodes have 64 for jobs",
            "ask for at most 64 CPUs per task",
        ),
        (
            {"gpus_per_node": 4, "mem": "300G"},
            "mem",
            "300G per node, and a100 nodes have 256000M",
            "write mem: 256000M",
        ),
        (
            {"constraint": "slow"},
            "constraint",
            'no node of lab has the feature "slow"',
            "known: fast",
        ),
        (
            {"array": "0-101"},
            "array",
            "index 101, and lab allows at most 100",
            "use smaller indices, several arrays, or several runs in each task",
        ),
        (
            {"partition": "gup"},
            "partition",
            'lab has no partition "gup"',
            "known: gpu, h100, old, shut, whole",
        ),
        (
            {"partition": "shut"},
            "partition",
            "partition shut is INACTIVE",
            "choose another partition, or wait",
        ),
        (
            {"partition": "h100", "gpus_per_node": 8, "cpus_per_task": 5},
            "cpus_per_task",
            "40 CPUs per node, and partition h100 gives 32 (MaxCPUsPerNode)",
            "ask for at most 4 CPUs per task",
        ),
        (
            {"sbatch": {"stepmgr": None, "spread-segments": None}},
            ("sbatch", "spread-segments"),
            "spread-segments needs Slurm 25.11",
            None,
        ),
    ],
)
def test_what_cannot_run(job: dict[str, Any], key: Any, what: str, fix: str | None) -> None:
    (found,) = refusals({"time": "1h", **job})
    assert found[0] == key
    if fix is None:
        assert "spread-segments" in found[1]
    else:
        assert found[1:] == (what, fix)


def test_any_of_several_kinds_of_nodes_may_run_it() -> None:
    up = NODES.replace("DOWN*", "IDLE")
    assert verdict({"partition": "whole", "nodes": 5, "gpus_per_node": 4}, nodes=up).refusals == []
    ((key, what, fix),) = refusals({"partition": "whole", "nodes": 6}, nodes=up)
    assert (key, fix) == ("nodes", "write nodes: 5")
    assert what == "6 nodes, and partition whole of lab has 5 that could run it"
    ((key, what, _),) = refusals({"partition": "whole", "nodes": 4, "gpus_per_node": 8}, nodes=up)
    assert what == "4 nodes, and partition whole of lab has 3 that could run it"


def test_no_default_partition() -> None:
    ((key, what, fix),) = refusals({}, partitions=PARTITIONS.replace("Default=YES", "Default=NO"))
    assert (key, what) == ("partition", "no partition is named, and lab has no default one")
    assert fix == "write partition: auto, or one of gpu, h100, whole, old, shut"


def test_what_would_wait_or_waste() -> None:
    assert doubts({"partition": "old", "gpus_per_node": 4}) == [
        ("partition", "partition old is DOWN")
    ]
    assert doubts({"partition": "whole", "nodes": 3, "gpus_per_node": "h100:8"}) == [
        ("nodes", "3 nodes, and 1 of the 3 in partition whole that could run it are up")
    ]
    assert doubts({"gpus_per_node": 1, "cpus_per_task": 40}) == [
        (
            "cpus_per_task",
            "40 of a node's 64 CPUs for 1 of 4 GPUs leaves 2 of the other 3 without a share",
        )
    ]
    assert doubts({"partition": "whole", "gpus_per_node": "a100:1"}) == [
        ("gpus_per_node", "whole nodes for 1 of their 4 GPUs leave 3 to nobody")
    ]


@pytest.mark.parametrize(
    ("job", "found"),
    [
        ({}, []),
        ({"account": "small"}, []),
        # Slurm has it in small letters, and sites write it in their own.
        ({"account": "SMALL"}, []),
        (
            {"account": "others"},
            [
                (
                    "account",
                    "account others is none of yours on lab",
                    "write account: big or few or small or tiny",
                )
            ],
        ),
        (
            {"qos": "week"},
            [
                (
                    "qos",
                    "QOS week is none of those of account small",
                    "write qos: debug or normal",
                )
            ],
        ),
        ({"account": "big", "qos": "week", "time": "3-0"}, []),
        (
            {"qos": "debug", "time": "1h"},
            [
                (
                    "time",
                    "time 01:00:00 is over the 00:30:00 of QOS debug",
                    "write time: 00:30:00, or qos: normal",
                )
            ],
        ),
        (
            {"qos": "debug", "time": "10m", "gpus_per_node": 4},
            [
                (
                    "gpus_per_node",
                    "4 GPUs in the job, and QOS debug allows 2",
                    "write gpus_per_node: 2, or qos: normal",
                )
            ],
        ),
        (
            {"partition": "h100"},
            [
                (
                    "partition",
                    "partition h100 is not for account small",
                    "one of big may use it",
                )
            ],
        ),
        ({"partition": "h100", "account": "big"}, []),
        ({"partition": "h100", "account": "BIG"}, []),
        # The account's own default, which is not that of the others.
        (
            {"account": "tiny", "time": "1h"},
            [
                (
                    "time",
                    "time 01:00:00 is over the 00:30:00 of QOS debug",
                    "write time: 00:30:00, or qos: normal",
                )
            ],
        ),
        (
            {"account": "few", "time": "2h", "gpus_per_node": 4},
            [
                (
                    "time",
                    "time 02:00:00 is over the 01:00:00 of account few",
                    "write time: 01:00:00",
                ),
                (
                    "gpus_per_node",
                    "4 GPUs in the job, and account few allows 3",
                    "write gpus_per_node: 3",
                ),
            ],
        ),
        ({"account": "few", "time": "1h", "gpus_per_node": 3, "cpus_per_task": 16}, []),
        (
            {"account": "big", "qos": "week", "array": "0-4"},
            [
                (
                    "array",
                    "5 tasks, and a user may have 4 jobs in QOS week at once",
                    "use fewer tasks, or several runs in each",
                )
            ],
        ),
        ({"account": "big", "qos": "week", "array": "0-3"}, []),
        (
            {
                "account": "big",
                "qos": "week",
                "partition": "h100",
                "nodes": 3,
                "time": "6-00:00:00",
                "gpus_per_node": 8,
                "constraint": "fast",
            },
            [
                (
                    "time",
                    OVER_NODE_TIME,
                    "write time: 4-16:00:00, or write nodes: 2, or qos: normal",
                )
            ],
        ),
    ],
)
def test_the_users_own(job: dict[str, Any], found: list[tuple[Any, str, str]]) -> None:
    assert refusals(job, config=ENFORCED, **ACCOUNTS) == found


def test_a_test_that_forgets_the_qos() -> None:
    job = {"account": "big", "partition": "gpu", "nodes": 2}
    found = verdict({**job, "qos": "wide"}, config=ENFORCED, **ACCOUNTS)
    assert found.refusals == []
    assert found.untestable == (
        "QOS wide lets a job have more nodes than partition gpu (1), and that test forgets it"
    )
    for fine in ({**job, "qos": "wide", "nodes": 1}, {**job, "qos": "week"}):
        assert verdict(fine, config=ENFORCED, **ACCOUNTS).untestable == ""


def test_limits_that_slurm_does_not_keep_to() -> None:
    job = {"account": "few", "time": "2h", "qos": "week", "array": "0-9"}
    config = f"{CONFIG}AccountingStorageEnforce = associations\n"
    assert refusals(job, config=config, **ACCOUNTS) == []


def test_a_user_without_an_account() -> None:
    said = {"associations": "", "qos": "normal||||||||||\n", "user": ""}
    assert refusals({}, config=ENFORCED, **said) == [
        ("account", "no account on lab", "ask the site for an account")
    ]
    # Where nothing is enforced, an account is a label.
    assert refusals({"account": "any"}, **said) == []
