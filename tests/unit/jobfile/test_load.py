"""Job files as a whole: what goes together, where an error is shown, and all of them at once."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slurmgen.errors import InvalidInput, UsageError
from slurmgen.jobfile.job import JobSpec
from slurmgen.jobfile.load import load_job

if TYPE_CHECKING:
    from slurmgen.diagnostics import Diagnostic

MINIMAL = "command: [true]\n"


def errors(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(InvalidInput) as caught:
        load_job(text, "job.yaml")
    return caught.value.diagnostics


def spec(text: str) -> JobSpec:
    return load_job(MINIMAL + text, "job.yaml").spec


# What stands below `command: [true]` -> line, column, a part of the message, a part of the fix.
WRONG = {
    "time: 90x": (2, 7, '"90x" is not a time', "90m"),
    "time: 1.5h": (2, 7, '"1.5h" is not a time', "write 01:30:00"),
    "mem: 1.5G": (2, 6, '"1.5G" is not an amount', "write 1536M"),
    "gpus_per_node: 4:a100": (2, 16, "count before the type", "write a100:4"),
    "nodes: 1-2": (2, 8, "not a number of nodes", "nodes: 2"),
    "nodes: [2]": (2, 8, "a list in place of one value", "one value"),
    "nodes:\n  a: 1": (3, 3, "a mapping in place of one value", "one value"),
    "cpus_per_task: many": (2, 16, 'cpus_per_task is "many"', "whole number"),
    "cpus_per_task: defualt": (2, 16, "cpus_per_task is", "give a whole number or default"),
    "cpus_per_task: 0": (2, 16, 'cpus_per_task is "0"', "write 1"),
    "requeue: maybe": (2, 10, 'requeue is "maybe"', "true or false"),
    "launcher: trun": (2, 11, 'launcher is "trun"', "write srun"),
    "gpus: 8": (2, 1, 'unknown key "gpus"', "gpus_per_node"),
    "walltime: 1:00:00": (2, 1, 'unknown key "walltime"', "write time:"),
    "ntask_per_node: 4": (2, 1, 'unknown key "ntask_per_node"', '"ntasks_per_node"'),
    "zzz: 4": (2, 1, 'unknown key "zzz"', "sbatch"),
    "setup: {modlues: a}": (2, 9, 'unknown key "modlues" in setup', '"modules"'),
    "nodes: 2\nnodes: 3": (3, 1, '"nodes" is given twice (first in line 2)', "keep one"),
    "mem: 4G\nmem_per_cpu: 1G": (3, 14, "mem and mem_per_cpu are both given", "keep one"),
    "cpus_per_task: 2\ncpus_per_gpu: 2\ngpus_per_node: 1": (3, 15, "both given", "keep one"),
    "mem_per_gpu: 4G": (2, 14, "mem_per_gpu without gpus_per_node", "mem_per_cpu"),
    "cpus_per_task: default\ncpus_per_gpu: 2\ngpus_per_node: 1": (3, 15, "both given", "keep one"),
    "cpus_per_gpu: 4": (2, 15, "cpus_per_gpu without gpus_per_node", "cpus_per_task"),
    "gpus_per_node: 4\nntasks_per_node: 2": (3, 18, "2 task(s) for 4 GPUs", "remove"),
    "nodes: 2\nntasks: 1": (3, 9, "1 task(s) on 2 nodes", "nodes: 1"),
    "nproc_per_node: 2": (2, 17, "for launcher torchrun", "ntasks_per_node"),
    "launcher: plain\nnodes: 2": (3, 8, "launcher plain runs one process", "launcher: srun"),
    "launcher: spawn\nntasks_per_node: 2": (3, 18, "runs one task per node", "remove"),
    "rdzv: c10d": (2, 7, "rdzv with launcher srun", "torchrun"),
    "ddp: train.py": (2, 6, "command and ddp are both given", "keep one"),
    "args: [a]": (2, 7, "args without ddp", "command"),
    "time: 1h\ntime_min: 2h": (3, 11, "time_min 02:00:00 is longer", "below time"),
    "time_min: 0": (2, 11, "time_min UNLIMITED is longer", "below time"),
    "time: 2h\ndeadline: now+1hour": (3, 11, "sooner than the job is long", "later deadline"),
    "output: x-%a": (2, 9, "the job is no array", "%j"),
    "nodelist: n[1-3]\nnodes: 2": (2, 11, "names 3 hosts for nodes: 2", "nodes: 3"),
    "nodelist: n1\nexclude: n[1-2]": (3, 10, "n1 is in both", "remove it"),
    "env:\n  RANK: 0": (3, 3, "RANK is set by the script", "remove"),
    "env: {CUDA_VISIBLE_DEVICES: 0}": (2, 7, "Slurm's to set", "local rank"),
    "env: {SLURM_X: 1}": (2, 7, "belongs to Slurm", "remove"),
    "env: {BASH_ENV: x}": (2, 7, "BASH_ENV belongs to Bash", "setup.commands"),
    "env: {UID: 5}": (2, 7, "UID belongs to Bash", "remove"),
    "env: {first_node: x}": (2, 7, "a name of the script's own", "rename"),
    "signal: B:USR1@120": (2, 9, "goes to the batch shell alone", "write signal: USR1@120"),
    "launcher: torchrun\nsignal: USR1": (3, 9, "signal USR1 with launcher torchrun", "srun"),
    "requeue: {signal: USR1}\nsignal: USR1@9": (3, 9, "beside requeue", "remove signal"),
    "launcher: spawn\nrequeue: {}": (3, 10, "requeue on USR1@180 with launcher spawn", "srun"),
    "launcher: spawn\nrequeue: on_node_fail": (3, 10, "requeue: on_node_fail with", "srun"),
    "requeue: {on_node_fail: maybe}": (2, 25, 'on_node_fail is "maybe"', "true or false"),
    "launcher: torchrun\nrequeue: {}": (3, 10, "with launcher torchrun", "launcher: srun"),
    "requeue: {}\ntime: 4m": (3, 7, "time 00:04:00 with the signal USR1@180", "over 00:04:00"),
    "requeue: {}\ntime: 1h\ntime_min: 3m": (4, 11, "time_min 00:03:00 with", "time_min well over"),
    "requeue: {signal: 'B:USR2@60'}": (2, 19, "has the flags B", "write USR2@60"),
    "requeue: {signal: TERM}": (2, 19, '"TERM" is not USR1 or USR2', "write USR1@180"),
    "requeue: {signal: USR2@0}": (2, 19, "leaves no time to save", "write USR2@180"),
    "requeue: {signal: USR3}": (2, 19, "no signal that Slurm knows", "USR1@120"),
    "requeue: {signal: }": (2, 19, "the value is empty", "give one"),
    "requeue: {max_restarts: 0}": (2, 25, "lets the job never come back", "requeue: false"),
    "requeue: {max_restarts: -1}": (2, 25, "not a number of restarts", "max_restarts: 20"),
    "requeue: {max_restarts: 10001}": (2, 25, "not a number of restarts", "max_restarts: 20"),
    "requeue: {max_restart: 2}": (2, 11, 'unknown key "max_restart" in requeue', "max_restarts"),
    "max_restarts: 2": (2, 1, 'unknown key "max_restarts"', "requeue: {max_restarts: 20}"),
    "env: {job: x}": (2, 7, "a name of the script's own", "rename"),
    "env: {SLURMGEN_PROGRESS: x}": (2, 7, "is set by the script", "remove"),
    "gpus_per_node: 4\nsbatch: {gpu-bind: 'single:1'}": (3, 10, "single:1 with 4 GPUs", "remove"),
    "sbatch: {gpus-per-t: {value: 1, plugin: true}}": (2, 10, "not a plugin's", "gpus-per-task"),
    "sbatch: {N: {value: 1, plugin: true}}": (2, 10, "no name of an option", "documentation"),
    "setup: {venv: -x}": (2, 15, "starts with a dash", "write ./-x"),
    "setup: {modules: [-h]}": (2, 19, "starts with a dash", "module avail"),
    "template: partials/port": (2, 11, "a part of a template", "template: job"),
    "output: a\\b": (2, 9, "backslash", "remove"),
    "sbatch: {hint: foo}": (2, 10, '"foo" is no value for hint', "sbatch(1)"),
    "sbatch: {gpus: 4}": (2, 10, "gpus does not belong", "gpus_per_node"),
    "sbatch: {label: true}": (2, 10, "label is an option of srun", "remove it"),
    "sbatch: {gpu-bind: closest}": (2, 10, "gpu-bind without gpus_per_node", "gpus_per_node"),
    "sbatch: {gpu-bind: none, gpu_bind: none}\ngpus_per_node: 1": (
        2,
        26,
        "gpu-bind is given twice",
        "keep one",
    ),
    "nodes: 3\nsbatch: {segment: 2}": (3, 10, "segments of 2 nodes", "divides"),
    "sbatch: {resv-ports: 2}": (2, 10, "resv-ports without stepmgr", "stepmgr"),
    "licenses: a=1": (2, 11, '"a=1" is not a license', "write a:1"),
    "comment: ééé" + "é" * 600: (2, 10, "1206 bytes long", "shorten"),
    "setup: {venv: a, conda: b}": (2, 25, "venv and conda are both given", "keep one"),
    "output: ~/x": (2, 9, "holds a shell expansion", "%j"),
    "chdir: $HOME": (2, 8, "is not a folder", "whole path"),
    "job_name: ''": (2, 11, "the value is empty", "remove"),
    "partition: a b": (2, 12, "holds a blank", "check the name"),
    "array: 0-3%0": (2, 8, "not an array", "0-3%1"),
    "time: !!int 5": (2, 7, "tag:yaml.org,2002:int", "remove the tag"),
    "time: [": (3, 1, "expected node content", "quotes"),
}


@pytest.mark.parametrize("text", WRONG)
def test_each_error_has_its_place_and_its_fix(text: str) -> None:
    line, column, message, fix = WRONG[text]
    found = errors(MINIMAL + text)
    assert [(d.location.line, d.location.column) for d in found] == [(line, column)], found
    assert message in found[0].message
    assert fix in found[0].fix
    assert "pydantic" not in repr(found).lower()


def test_every_error_is_said_at_once() -> None:
    text = "time: 90x\nmem: 4Gi\nwall: 1\nmem_per_cpu: 1G\nrdzv: c10d\nenv: {1A: x, RANK: 2}\n"
    found = errors(text)
    lines = [d.location.line for d in found]
    assert {1, 2, 3, 5, 6} <= set(lines)
    assert any("the job has no program" in d.message for d in found)
    # What follows from a wrong value is not said besides.
    assert not any("mem and mem_per_cpu" in d.message for d in found)


def test_scalars_keep_the_meaning_they_are_written_with() -> None:
    found = spec(
        "time: 4:00:00\njob_name: 0123\npartition: NO\ncomment: 1e-3\naccount: on\n"
        "mem: 010\nenv: {A: yes, B: 1_000, C: 12:30:00, D: 0x1F, E: .5, F: 2030-01-20}\n"
    )
    assert (str(found.time), found.job_name, found.partition) == ("04:00:00", "0123", "NO")
    assert (found.comment, found.account, str(found.mem)) == ("1e-3", "on", "10")
    assert list(found.env.values()) == ["yes", "1_000", "12:30:00", "0x1F", ".5", "2030-01-20"]
    assert str(spec("time: 1:30").time) == "00:01:30"
    assert str(spec("time: 90").time) == "01:30:00"


def test_python_values_are_read_as_their_text() -> None:
    found = JobSpec(
        command=["sleep", 1], nodes=2, mem=4096, nodelist=["n1", "n2"], mail_type=["end", "fail"]
    )
    assert found.command == ("sleep", "1")
    assert (found.nodes, str(found.mem), found.nodelist, found.mail_type) == (
        2,
        "4096",
        "n1,n2",
        "END,FAIL",
    )


@pytest.mark.parametrize(
    ("override", "expected"), [("nodes=4", 4), ("nodes=", 1), ("nodes=~", 1), ("nodes= 3", 3)]
)
def test_overrides_come_before_the_file(override: str, expected: int) -> None:
    if override == "nodes=":
        with pytest.raises(InvalidInput):
            load_job(MINIMAL + "nodes: 2", "job.yaml", overrides=[override])
        return
    found = load_job(MINIMAL + "nodes: 2", "job.yaml", overrides=[override]).spec
    assert found.nodes == expected


def test_defaults_step_back_for_what_the_file_says() -> None:
    defaults = {"mem": "8G", "partition": "gpu"}
    found = load_job(MINIMAL + "mem_per_cpu: 2G", "job.yaml", defaults=defaults).spec
    assert (found.mem, str(found.mem_per_cpu), found.partition) == (None, "2G", "gpu")


KEYS = sorted({*JobSpec.model_fields, "gpus", "Time", "x-y", "modules", "image", "load", "plugin"})
SCALARS = st.one_of(
    st.none(),
    st.text(max_size=6),
    st.sampled_from(
        "0 1 -1 2 4 4G 0-3 n[1-2] true no %a ${X} ${ ~ $x \\ a:b a,b 1h @ nan inf".split()
    ),
    st.sampled_from(["infG", "nanG", "9" * 5000, "\ud800", "\0", "\n", "٣", "now+", "[", "a100:x"]),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(KEYS), TREES, max_size=8))
def test_nothing_but_invalid_input_comes_of_any_structure(data: dict[str, Any]) -> None:
    text = yaml.safe_dump(data, allow_unicode=False)
    check(text)


@given(st.text(max_size=40))
def test_nothing_but_invalid_input_comes_of_any_text(text: str) -> None:
    check(text)


@pytest.mark.parametrize("seed", range(200))
def test_nothing_but_invalid_input_comes_of_each_key_with_any_value(seed: int) -> None:
    choose = random.Random(seed)
    values = [
        "",
        "x",
        "0",
        "-1",
        "1:2",
        "٣",
        "ſ",
        "nan",
        "inf",
        "9" * 400,
        "%",
        "[",
        "infG",
        "1.5e9h",
    ]
    for key in JobSpec.model_fields:
        value: Any = choose.choice(values)
        value = choose.choice([value, [value], {value: value}, [[value]], {"a": [value]}, None])
        check(yaml.safe_dump({"command": "true", key: value}))


def check(text: str) -> None:
    try:
        load_job(text, "job.yaml")
    except InvalidInput as error:
        found = error
    else:
        return
    assert found.diagnostics
    for diagnostic in found.diagnostics:
        assert diagnostic.message
        assert diagnostic.fix
        assert diagnostic.location.line >= 1
        assert diagnostic.location.column >= 1
        assert "Input should be" not in diagnostic.message
        assert "valid" not in diagnostic.message.lower().split()


# --- overrides -----------------------------------------------------------------------


def overridden(text: str, *overrides: str) -> JobSpec:
    return load_job(MINIMAL + text, "job.yaml", overrides=overrides).spec


def test_an_override_completes_what_is_written_short() -> None:
    modules = overridden("setup: {modules: [cuda/12, gcc]}", "setup.modules.purge=true").setup
    assert modules.modules is not None
    assert (modules.modules.purge, modules.modules.load) == (True, ("cuda/12", "gcc"))
    word = overridden("setup: {modules: cuda/12}", "setup.modules.purge=true").setup.modules
    assert word is not None
    assert (word.purge, word.load) == (True, ("cuda/12",))
    container = overridden("setup: {container: img.sif}", "setup.container.gpu=none").setup
    assert container.container is not None
    assert (container.container.image, container.container.gpu) == ("img.sif", "none")
    full = overridden("setup: {modules: {load: [a], purge: true}}", "setup.modules.load=[b]").setup
    assert full.modules is not None
    assert (full.modules.purge, full.modules.load) == (True, ("b",))


@pytest.mark.parametrize("written", ["gpu_bind", "gpu-bind"])
@pytest.mark.parametrize("given", ["gpu_bind", "gpu-bind"])
def test_an_override_of_an_option_wins_however_either_is_spelt(written: str, given: str) -> None:
    text = f"gpus_per_node: 1\nsbatch: {{{written}: closest, nice: 3}}"
    found = overridden(text, f"sbatch.{given}=none").sbatch
    assert found == {"gpu-bind": "none", "nice": "3"}
    assert overridden(text, f"sbatch.{given}=~").sbatch == {"nice": "3"}


def test_a_wrong_option_of_an_override_is_shown_there() -> None:
    with pytest.raises(InvalidInput) as caught:
        overridden("sbatch: {gpu_bind: closest}\ngpus_per_node: 1", "sbatch.gpu_bind=nosuch")
    (found,) = caught.value.diagnostics
    assert found.location.start == ("--set sbatch.gpu_bind=nosuch", 1, 1)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("nodes", "is not KEY=VALUE"),
        ("=2", "is not KEY=VALUE"),
        ("a..b=1", "is not KEY=VALUE"),
        (".a=1", "is not KEY=VALUE"),
        ("a.=1", "is not KEY=VALUE"),
        ("a.b.c.d=1", "deeper than any key"),
        ("nodes=2\nfoo: 1", "more than one value"),
        ("nodes.x=1", "nodes has no keys"),
        ("command.0=x", "command has no keys"),
    ],
)
def test_an_override_that_is_none(override: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        overridden("nodes: 2", override)


@pytest.mark.parametrize(
    ("override", "line", "column"),
    [("job_name=a: b", 1, 2), ("job_name=\x07", 1, 1), ("args=!x [a]", 1, 1), ("job_name=a\n b: c",
     2, 3)],
)  # fmt: skip
def test_the_place_in_an_override_is_counted_from_its_value(
    override: str, line: int, column: int
) -> None:
    with pytest.raises(InvalidInput) as caught:
        overridden("", override)
    key = override.partition("=")[0]
    assert caught.value.diagnostics[0].location.start == (f"--set {key}", line, column)


def test_a_value_of_several_lines() -> None:
    assert overridden("", "command=|\n  a\n  b\n").command == "a\nb\n"
    assert overridden("", "env=\n  A: 1\n  B: 2\n").env == {"A": "1", "B": "2"}


# --- numbers without end -------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    ["nodes", "ntasks", "ntasks_per_node", "nproc_per_node", "cpus_per_task", "cpus_per_gpu"],
)
def test_every_count_has_the_same_words(key: str) -> None:
    (found,) = errors(f"{MINIMAL}{key}: {'9' * 5000}\n")
    assert found.message == f'{key} is "{"9" * 60}…"'
    assert (found.location.line, found.fix) == (2, "write a smaller number")
    (found,) = errors(f"{MINIMAL}{key}: 999999999\n")
    assert found.message == f'{key} is "999999999"'
    assert found.why.startswith("the most is ")
    assert found.fix.endswith(" or less")


@pytest.mark.parametrize(
    ("hosts", "why"),
    [
        (f"n[1-{'9' * 5000}]", "digits"),
        (f"n[{'0' * 5000}-1]", "digits"),
        ("n[0-65534][0-65534]", "more than 65536 hosts"),
        ("n[1-300]a[1-300]b[1-9]", "more than 65536 hosts"),
        ("n[" + ",".join(["0-65535"] * 400) + "]", "more than 65536 hosts"),
    ],
)
def test_no_list_of_hosts_fills_the_memory(hosts: str, why: str) -> None:
    (found,) = errors(f"{MINIMAL}nodelist: {hosts}\n")
    assert (found.location.line, found.location.column) == (2, 11)
    assert why in found.why
    assert len(found.message) < 200
