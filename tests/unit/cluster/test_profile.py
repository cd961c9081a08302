"""A profile's own mistakes are said with their place, and none of its rules is without effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurmgen.cluster.checks import refused_word
from slurmgen.cluster.load import load_profile
from slurmgen.cluster.profile import Profile
from slurmgen.errors import InvalidInput, Refusals, UsageError
from slurmgen.jobfile.job import JobSpec
from slurmgen.resources import configs_dir
from slurmgen.script.plan import resolve

if TYPE_CHECKING:
    from pathlib import Path

BUILT_IN = sorted(path.stem for path in (configs_dir() / "clusters").glob("*.yaml"))


def errors(text: str, folder: Path) -> list[tuple[int, str, str]]:
    """(line, message, fix) of everything wrong with a profile's file."""
    path = folder / "site.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        load_profile(str(path), folder)
    return [(d.location.line, d.message, d.fix) for d in caught.value.diagnostics]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_profile_loads(name: str, tmp_path: Path) -> None:
    assert load_profile(name, tmp_path).name == name


@pytest.mark.parametrize(
    "name",
    ["CUDA_VISIBLE_DEVICES", "RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_NTASKS", "BASH_ENV"],
)
def test_the_environment_has_the_rules_of_a_job_s(name: str, tmp_path: Path) -> None:
    ((line, message, _),) = errors(f"env:\n  NCCL_DEBUG: WARN\n  {name}: '0'\n", tmp_path)
    assert line == 3
    assert message.startswith(name)


@pytest.mark.parametrize(
    ("name", "fix"),
    [("partitoin", "write partition"), ("command", "remove it"), ("x", "remove it")],
)
def test_a_default_that_no_job_takes(name: str, fix: str, tmp_path: Path) -> None:
    text = f"defaults:\n  partition: gpu\n  {name}: gpu\n"
    assert errors(text, tmp_path) == [(3, f'"{name}" has no default in a profile', fix)]


@pytest.mark.parametrize(
    "word",
    [
        *("--nodes=1", "--ntasks=2", "--ntasks-per-node=2", "--tasks-per-node=2"),
        *("--cpus-per-task=1", "--cpus-per-gpu=1", "--gpus=1", "--gpus-per-task=1"),
        *("--gpus-per-node=1", "--gres=gpu:1", "--tres-per-task=gres/gpu:1"),
        *("--kill-on-bad-exit=0", "--kill-on-bad-exit", "--wait=30", "--export=NONE"),
        *("--distribution=cyclic", "--overcommit", "--multi-prog"),
        # Beginnings of names, which getopt takes for the whole.
        *("--ntask=2", "--cpus-per-t=1", "--gpus-per-t=1", "--kill=0", "--exp=NONE"),
        *("-N1", "-n2", "-c1", "-K0", "-K", "-W30", "-G1", "-mcyclic", "-O", "-n", "-lN1"),
        # No options: the program, or the end of the options.
        *("python", "block", "", "-", "--", "2", "-1", "--=x"),
        # They would take srun's next word.
        *("--cpu-bind", "--mpi", "--partition", "-p", "-lp", "-r"),
    ],
)
def test_a_word_of_srun_that_is_refused(word: str, tmp_path: Path) -> None:
    assert refused_word(word) is not None
    ((line, message, fix),) = errors(f"srun:\n  - --label\n  - '{word}'\n", tmp_path)
    assert line == 3
    assert word[:40] in message
    assert fix


@pytest.mark.parametrize(
    "word",
    [
        *("--cpu-bind=none", "--gres-flags=allow-task-sharing", "--gpu-bind=none", "--mpi=pmix"),
        *("--label", "-l", "-lu", "--unbuffered", "--exclusive", "--exact", "--overlap"),
        *("--wait-for-children", "--gpu-freq=high", "--network=single_node_vni", "-pgpu"),
        *("--site-plugin=on", "--het-group=0", "--export-file=vars"),
    ],
)
def test_a_word_of_srun_that_is_taken(word: str) -> None:
    assert refused_word(word) is None
    assert Profile(name="site", srun=[word]).srun == (word,)


@pytest.mark.parametrize("key", ["nodes", "gres", "partitoin", "time", "sbatch"])
def test_select_takes_only_what_chooses_nodes(key: str, tmp_path: Path) -> None:
    text = f"node_types:\n  - name: a100\n    select:\n      {key}: gpu\n"
    ((line, message, _),) = errors(text, tmp_path)
    assert line == 4
    assert f'unknown key "{key}"' in message


def test_the_values_of_select_are_those_of_a_job(tmp_path: Path) -> None:
    text = "node_types:\n  - name: a100\n    select: {partition: 'a b'}\n"
    assert [line for line, *_ in errors(text, tmp_path)] == [3]


def test_node_types_and_partitions_name_each_other(tmp_path: Path) -> None:
    text = """\
node_types:
  - {name: thin, select: {partition: "gpu,gup"}}
  - {name: fat, select: {partition: hidden}}
  - name: fat
partitions:
  - {name: gpu, node_types: [thin, thinn]}
  - {name: hidden, unnamed: the site chooses it}
"""
    assert [(line, message) for line, message, _ in errors(text, tmp_path)] == [
        (2, '"gup" is no partition that a job may name'),
        (3, '"hidden" is no partition that a job may name'),
        (4, 'two node types are called "fat"'),
        (6, 'there is no node type "thinn"'),
    ]


@pytest.mark.parametrize(
    ("key", "name", "fix"),
    [
        ("forbidden", "exclusiv", "write exclusive"),
        ("forbidden", "gpus_per_tsk", "write gpus-per-task"),
        ("required", "acount", "write account"),
        ("required", "wall", "remove it"),
    ],
)
def test_a_rule_about_an_unknown_name(key: str, name: str, fix: str, tmp_path: Path) -> None:
    ((line, message, said),) = errors(f"{key}:\n  {name}: the site says so\n", tmp_path)
    assert line in (1, 2)
    assert message.startswith(f'"{name}" is not ')
    assert said == fix


@pytest.mark.parametrize("name", ["mem-per-cpu", "mem_per_cpu"])
def test_a_rule_counts_in_either_spelling(name: str) -> None:
    profile = Profile(name="site", forbidden={name: "whole nodes"})
    with pytest.raises(Refusals) as caught:
        resolve(JobSpec(command="true", mem_per_cpu="1G"), profile)
    (problem,) = caught.value.problems
    assert (problem.what, problem.key) == (
        "site refuses --mem-per-cpu",
        ("mem_per_cpu",),
    )
    profile = Profile(name="site", required={name: "it is billed"})
    assert resolve(JobSpec(command="true", mem_per_cpu="1G"), profile)
    with pytest.raises(Refusals) as caught:
        resolve(JobSpec(command="true"), profile)
    (problem,) = caught.value.problems
    assert (problem.key, problem.fix) == ("mem_per_cpu", "add mem_per_cpu:")


@pytest.mark.parametrize("name", ["a" * 300, "a" * 5000, "é" * 200, "nul\0", ""])
def test_a_name_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no cluster profile") as caught:
        load_profile(name, tmp_path)
    assert len(str(caught.value)) < 100
    assert caught.value.fix


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False), ("null", None)])
def test_whether_devices_are_confined(text: str, value: bool | None, tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(f"constrain_devices: {text}\n")
    assert load_profile(str(path), tmp_path).constrain_devices is value
    ((line, _, _),) = errors("constrain_devices: mostly\n", tmp_path)
    assert line == 1


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("gpus: {form: gpu}\n", 1, 'gpus.form is "gpu"'),
        ("node_types:\n  - {name: a, vendor: intell}\n", 2, 'node_types.0.vendor is "intell"'),
        ("node_types:\n  - {name: a, cpus_rule: most}\n", 2, 'node_types.0.cpus_rule is "most"'),
        ("node_types:\n  - gpu: a100\n", 2, "node_types.0.name is missing"),
        ("partitions:\n  - {name: p, max_time: soon}\n", 2, '"soon" is not a time'),
        (
            "partitions:\n  - name: p\n    limits:\n      - {max_nods: 2}\n",
            4,
            'unknown key "max_nods" in partitions.0.limits.0',
        ),
        ("qos:\n  - {name: q, node_types: [b]}\n", 2, 'there is no node type "b"'),
        ("gpus: {source: guide}\n", 1, 'there is no source "guide"'),
        (
            "sources: {page: {where: x}}\nnotes:\n  - {text: t, source: [page, pag]}\n",
            3,
            'there is no source "pag"',
        ),
        ("sources:\n  page: {date: '2026'}\n", 2, "sources.page.where is missing"),
        ("status_source: [guide]\n", 1, 'there is no source "guide"'),
        ("add:\n  - when: {partition: [p]}\n", 2, 'there is no partition "p"'),
        ("add:\n  - {when: {qos: q}, srun: [-l]}\n", 2, 'there is no qos "q"'),
        ("limits:\n  - {when: {node_type: n}, max_gpus: 1}\n", 2, 'there is no node type "n"'),
        ("add:\n  - when: {launcher: mpirun}\n", 2, 'add.0.when.launcher is "mpirun"'),
        ("add:\n  - env: {RANK: 0}\n", 2, "RANK is set by the script"),
        ("add:\n  - task_env:\n      ROCR_VISIBLE_DEVICES: 0\n", 3, "ROCR_VISIBLE_DEVICES is"),
        ("add:\n  - srun: [--ntasks=2]\n", 2, "--ntasks=2 says what the script decides"),
        ("binding:\n  whole_nodes: [x]\n", 2, '"x" is not an option of srun'),
        ("required:\n  qos: {why: w, wen: {}}\n", 2, 'unknown key "wen" in required.qos'),
        ("forbidden:\n  mem: {when: {}}\n", 2, "forbidden.mem.why is missing"),
        ("required: {qos: {why: w, when: {partition: p}}}\n", 1, 'there is no partition "p"'),
        ("rendezvous: {port: {first: 80, count: 9}}\n", 1, 'rendezvous.port.first is "80"'),
        ("rendezvous:\n  port: {first: 60000, count: 9999}\n", 2, "ports 60000 to 69998"),
        ("container: docker\n", 1, 'container is "docker"'),
        ("memory: none\n", 1, 'memory is "none"'),
        ("launch: {avoid: {mpirun: no}}\n", 1, "mpirun"),
    ],
)
def test_what_is_wrong_with_a_profile_has_its_place(
    text: str, line: int, message: str, tmp_path: Path
) -> None:
    found = errors(text, tmp_path)
    assert [(at, message in said) for at, said, _ in found] == [(line, True)], found
    assert all(fix for *_, fix in found)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("partitions:\n  - {name: p, max_nods: 2}\n", 'write "max_nodes"'),
        ("partitions:\n  - {name: p, limits: [{max_nods: 2}]}\n", 'write "max_nodes"'),
        ("required:\n  qos: {why: w, wen: {}}\n", 'write "when"'),
        ("sources:\n  page: {where: x, knd: site}\n", 'write "kind"'),
    ],
)
def test_a_key_that_is_nearly_one(text: str, fix: str, tmp_path: Path) -> None:
    assert [said for *_, said in errors(text, tmp_path)] == [fix]
