"""Job files are refused exactly where sbatch refuses the same arguments.

`tests/slurm/verdicts.json` holds argument lists and the versions (of 20.11, 22.05, 24.11
and 26.05) whose `sbatch --test-only` accepted them, recorded on a real cluster of two
nodes. Each list is written as a job file and resolved on a profile that describes just
that cluster. Being more lenient than Slurm is a bug; being stricter needs a reason here.
"""

from __future__ import annotations

import json
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurmgen.cluster.profile import Gpus, Inventory, NodeType, Partition, Profile
from slurmgen.errors import InvalidInput, Refusals
from slurmgen.jobfile.keys import OPTIONS
from slurmgen.jobfile.load import load_job
from slurmgen.jobfile.source import at_key
from slurmgen.script.plan import resolve
from slurmgen.slurm.options import catalog

VERSIONS = ("20.11", "22.05", "24.11", "26.05")
_RECORDED = Path(__file__).parents[1] / "slurm" / "verdicts.json"
ACCEPTED: dict[str, set[str]] = {
    arguments: set(versions.split())
    for arguments, versions in json.loads(_RECORDED.read_text(encoding="utf-8")).items()
}


@cache
def recording_cluster(version: str) -> Profile:
    """The cluster the verdicts come from: n1 and n2, 16 CPUs, 64 GiB, 4 A100 each."""
    return Profile(
        name="recorded",
        slurm=version,
        gpus=Gpus(form="gres"),
        node_types=(
            NodeType(
                name="n",
                gpu="a100",
                gpus_per_node=4,
                cpus=16,
                memory="65536M",
                tmp="0",
                threads_per_core=1,
                count=2,
                features=(),
            ),
        ),
        partitions=(Partition(name="gpu", max_time="1-0"),),
        max_array_size=1001,
        preemption=False,
        inventory=Inventory(nodes=("n1", "n2"), licenses=(), reservations=(), gres=("gpu",)),
        defaults={"partition": "gpu"},
    )


def job_file(arguments: str) -> dict[str, Any]:
    """The job file that says what sbatch's arguments say, where a job file can."""
    job: dict[str, Any] = {"command": ["true"]}
    shorts = {option.short: option for option in catalog.options().values() if option.short}
    words = iter(shlex.split(arguments))
    for word in words:
        name, equals, value = word.partition("=")
        given: str | None = value if equals else None
        if word.startswith("--"):
            name = name[2:]
            option = catalog.find(name)
        else:
            option = shorts[word[1]]
            name, given = option.name, word[2:] or None
        if given is None and option is not None and option.argument == "required":
            given = next(words)
        _say(job, name, given)
    return job


def _say(job: dict[str, Any], name: str, value: str | None) -> None:
    key = name.replace("-", "_")
    if name == "gres" and value is not None and _only_gpus(value):
        job["gpus_per_node"] = value.removeprefix("gpu:") if value != "gpu" else "1"
    elif name == "no-requeue" and value is None:
        job["requeue"] = "false"
    elif key in OPTIONS and not (key == "requeue" and value):
        job[key] = "true" if value is None else value
    else:
        job.setdefault("sbatch", {})[name] = "true" if value is None else value


def _only_gpus(gres: str) -> bool:
    return gres.split(":", maxsplit=1)[0] == "gpu" and "," not in gres


def refusal(arguments: str, version: str) -> str | None:
    """What slurmgen says against the job file on that version, or None."""
    profile = recording_cluster(version)
    text = yaml.safe_dump(job_file(arguments))
    try:
        loaded = load_job(text, "job.yaml", defaults=profile.defaults)
    except InvalidInput as error:
        found = error
    else:
        try:
            resolve(loaded.spec, profile)
        except Refusals as error:
            found = InvalidInput([at_key(p, loaded.source) for p in error.problems])
        else:
            return None
    assert all(diagnostic.fix for diagnostic in found.diagnostics), found.diagnostics
    return "; ".join(f"{d.message}: {d.why}" for d in found.diagnostics)


# Options with no place in a job file: a list that holds one is refused, whatever Slurm says.
UNSAYABLE = {
    "gpus": "lets Slurm spread the GPUs unevenly over the nodes",
    "gpus-per-task": "hides the other GPUs of the node from each rank",
    "gpus-per-socket": "how many sockets a node has is not known",
    "ntasks-per-gpu": "the ranks follow from the GPUs: a rank per GPU",
    "ntasks-per-socket": "the ranks follow from the nodes",
    "tres-per-task": "says cpus_per_task and gpus_per_node another way",
    "overcommit": "ranks would share CPUs that cpus_per_task promises them",
    "uid": "root's",
    "gid": "root's",
    "test-only": "belongs to submitting",
    "parsable": "belongs to submitting",
    "quiet": "belongs to submitting",
    "external": "such a job runs no script",
}

# Slurm (some version of it) accepts these, and the job file refuses them: why -> which.
STRICTER: dict[str, list[str]] = {
    "counts by GPUs that the job has not": ["--mem-per-gpu=1G", "--cpus-per-gpu=2"],
    "says two things of which one is ignored, or refused by a newer Slurm": [
        "--cpus-per-gpu=2 --cpus-per-task=2 --gres=gpu:4",
        "--exclusive --oversubscribe",
        "--hint=nomultithread --threads-per-core=1",
        "--hint=nomultithread --ntasks-per-core=1",
        "--core-spec=1 --thread-spec=1",
        "--kill-on-invalid-dep=yes",
    ],
    "spells GPUs in a way that not every version reads, or twice": [
        "--gres=gpu=2",
        "--gres=gpu:a100=2",
        "--gres=gres/gpu:2",
        "--gres=gres:gpu:2",
        "--gres=gpu:2,gpu:1",
        "--gres=gpu:a100:1,gpu:a100:1",
        "--gpus-per-node=a100=4",
    ],
    "asks for nothing, or for a help text": [
        "--gres=gpu:0",
        "--gres=none",
        "--gres=NONE",
        "--gres=help",
        "--gres=",
        "--export=",
        "--output=",
        "--job-name=",
        "--comment=",
    ],
    "is over the partition's limit: the job would wait for ever": [
        "--time=1-2",
        "--time=100:00:00",
        "--time=25:00:00",
        "--time=infinite",
        "--time=UNLIMITED",
        "--time=-1",
        "--time=0",
    ],
    "leaves the number of nodes open, and the ranks need it": [
        "--nodes=1-2",
        "--nodes=1,2",
        "--nodes=1-2:1",
        "--nodes=0",
        "--ntasks=8 --ntasks-per-node=4",
        "--nodelist=n1,n2 -N1",
    ],
    "leaves nodes idle or unevenly filled": [
        "--ntasks=4 --nodes=2 --ntasks-per-node=4",
        "--nodes=2 --ntasks=1",
    ],
    "means something else than it seems to": [
        "--array=0-3%0",
        "--array=1,1",
        "--array=0-1%2%3",
        "--dependency=afterok:1,afterany:2?after:3",
        "--mail-type=BEGIN,FOO",
        "--output=%Z.out",
        "--output=%10000j",
        "--deadline=now+1minute --time=5",
    ],
    "puts ranks elsewhere than the plan says": [
        "--distribution=plane=4",
        "--distribution=arbitrary",
        "--distribution=arbitrary -N2",
    ],
    "ends the batch shell, which has no trap, and with it the job": [
        "--signal=B:USR1@120",
        "--signal=RB:USR1@120",
        "--signal=BR:USR1@120",
        "--signal=b:usr1@120",
        "--signal=B:10",
    ],
    "is gone from newer versions": ["--get-user-env=10L"],
    "is an abbreviation, which changes its meaning when an option is added": [
        "--ntasks-per-no=2",
        "--cpus-per-t=2",
    ],
}

# Slurm (some version of it) refuses these, and the job file means something that it takes.
LOOSER = {
    "--time=90m": "our shorthand: 01:30:00 is rendered",
    "--time=1h": "our shorthand: 01:00:00 is rendered",
    "--gres=gpu:2 --gpus-per-node=2": "one key of the job file, and one directive",
    "--gres=gpu:2 --gpus-per-node=4": "one key of the job file, and one directive",
}

# What only the cluster knows at that moment: jobs, files, other clusters, the date.
LIVE = {
    "--dependency=afterok:1": "a job that is gone",
    "--dependency=afterok:999999": "a job that is not there",
    "--dependency=afterok:1:2,afterany:3": "a job that is gone",
    "--dependency=afterok:1?afterany:2": "a job that is gone",
    "--dependency=afternotok:1": "a job that is gone",
    "--dependency=afterok:1_3": "a job that is gone",
    "--dependency=afterok:1_*": "a job that is gone",
    "--deadline=2020-01-01": "the date",
    "--export-file=/nonexistent": "a file",
    "--bbf=/nonexistent": "a file",
    "--clusters=test": "the database",
    "--clusters=nope": "the database",
}

_STRICTER = {arguments for lists in STRICTER.values() for arguments in lists}


def is_unsayable(arguments: str) -> bool:
    job = job_file(arguments)
    return bool(UNSAYABLE.keys() & {*job.get("sbatch", {}), *job})


def test_every_list_is_in_one_class_and_no_class_names_another() -> None:
    named = [*_STRICTER, *LOOSER, *LIVE]
    assert len(named) == len(set(named))
    assert set(named) <= ACCEPTED.keys()
    assert not [arguments for arguments in named if is_unsayable(arguments)]
    used = {name for arguments in ACCEPTED for name in job_file(arguments).get("sbatch", {})}
    assert UNSAYABLE.keys() <= used


@pytest.mark.parametrize("arguments", ACCEPTED)
def test_verdict(arguments: str) -> None:
    refusals = {version: refusal(arguments, version) for version in VERSIONS}
    ours = {version for version, found in refusals.items() if found is None}
    slurm = ACCEPTED[arguments]
    if is_unsayable(arguments):
        assert not ours
    elif arguments in _STRICTER:
        assert ours < slurm, f"no longer stricter: {refusals}"
    elif arguments in LOOSER or arguments in LIVE:
        assert ours > slurm, f"no longer looser: {refusals}"
    else:
        assert ours == slurm, refusals
