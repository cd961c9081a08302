"""Random job files, read back by sbatch itself and by the controller.

`sbatch -vv --test-only` prints every option as it understood it ("defined options"): what
it understood must be what the plan decided, for every directive, whatever the strings hold.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from slurmgen.cluster.profile import Gpus, Profile
from slurmgen.jobfile.job import JobSpec
from slurmgen.sandbox import Sandbox, Shape
from slurmgen.script.plan import JobPlan, resolve
from slurmgen.script.render import render
from slurmgen.slurm import directives
from slurmgen.slurm.grammars.memory import parse_memory
from slurmgen.slurm.grammars.time import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slurm, pytest.mark.matrix]

PROFILES = tuple(
    Profile(name=form, gpus=Gpus(form=form), slurm="22.05") for form in ("gres", "gpus-per-node")
)


class Oracle:
    """A sandbox, its environment, and the folder the scripts are read from."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.folder = folder
        self.environment = sandbox.environment()

    def sbatch(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        path = self.folder / "job.sbatch"
        path.write_text(script, encoding="utf-8", newline="")
        # The daemons' own run() costs a fork more; there are hundreds of calls here.
        return subprocess.run(
            ["sbatch", *options, str(path)],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )

    def read(self, script: str) -> dict[str, str]:
        """The options of a script as sbatch understood them."""
        answer = self.sbatch(script, "-vv", "--test-only")
        _, start, rest = answer.stderr.partition("sbatch: defined options\n")
        shown, end, _ = rest.partition("sbatch: end of defined options\n")
        assert start, answer.stderr
        assert end, answer.stderr
        lines = [line.removeprefix("sbatch: ") for line in shown.split("\n")]
        pairs = [line.partition(": ") for line in lines if line and not line.startswith("-----")]
        found = {name.strip(): value for name, _, value in pairs}
        if "gres" in found:
            found["gres"] = _GRES.sub("", found["gres"])
        return {name: value for name, value in found.items() if name not in _OURS}

    def submitted(self, script: str) -> str:
        """What the controller says of the script as a held job, which is cancelled."""
        answer = self.sbatch(script, "--parsable", "--hold")
        assert answer.returncode == 0, answer.stderr
        job = answer.stdout.strip()
        shown = self.sandbox.run(["scontrol", "show", "job", job]).stdout
        self.sandbox.run(["scancel", job])
        return shown


# What Slurm puts before each: nothing on 20.11, gres: on 22.05, gres/ on 24.11 and 26.05.
_GRES = re.compile(r"\bgres[:/]")
# Of the command line that asks, not of the script.
_OURS = ("verbose", "test-only")


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    folder = tmp_path_factory.mktemp("oracle")
    shape = Shape(extra_conf=("GresTypes=gpu,nvme,tmpdisk", "Licenses=matlab:9,ansys:9"))
    with Sandbox.up(name="oracle", shape=shape, directory=folder / "sandbox") as sandbox:
        yield Oracle(sandbox, folder)


# --- random job files -----------------------------------------------------------------

_HOSTILE = ["'", '"', "\\", "#", "$(id)", "`id`", "$HOME", "%j", "--nodes=9", "ü", "日本", "\u00a0"]
_HOSTILE += [
    " ",
    ";",
    "&",
    "|",
    "*",
    "?",
    "~",
    "=",
    ",",
    "!",
    "a",
    "\U0001f600",
    "(",
    "]",
    "\u2028",
]
LINES = st.lists(st.sampled_from(_HOSTILE), min_size=1, max_size=12).map("".join)
NAMES = LINES.filter(lambda text: bool(text.strip()))
IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.@-]{0,12}", fullmatch=True)
# Where a backslash, $ or ~ would not do what it seems to.
PATHS = LINES.map(lambda text: "logs/" + re.sub(r"[\\$`%~]", "", text) + "-%j.out")
SECONDS = st.integers(60, 20_000 * 86_400)


def times(seconds: int) -> st.SearchStrategy[str]:
    """A number of seconds in one of the spellings of a job file."""
    minutes, rest = divmod(seconds, 60)
    hours, short = divmod(minutes, 60)
    days, clock = divmod(hours, 24)
    spellings = [f"{minutes}:{rest}", f"{hours}:{short:02}:{rest:02}", f"{minutes}m", f"{minutes}"]
    spellings += [f"{days}-{clock}", f"{days}-{clock}:{short}", f"{hours or 1}h", f"{seconds}s"]
    return st.sampled_from([text for text in spellings if parse_time(text)])


MEMORY = st.builds("{}{}".format, st.integers(1, 4000), st.sampled_from(["", "K", "m", "MB", "G"]))
SIGNALS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "R:", "r:"]),
    st.sampled_from(["USR1", "SIGTERM", "int", "10", "64"]),
    st.sampled_from(["", "@120", "@60", "@0", "@65535"]),
)
OTHERS = st.fixed_dictionaries(
    {},
    optional={
        "nice": st.integers(-100, 100).map(str),
        "switches": st.sampled_from(["1", "2@10", "1@1:00:00"]),
        "wckey": IDENTIFIERS,
        "distribution": st.sampled_from(["block:cyclic", "cyclic", "*:block"]),
        "contiguous": st.just("true"),
        "spread-job": st.just("true"),
        "reboot": st.just("true"),
        "propagate": st.sampled_from(["NOFILE,CORE", "NONE", "ALL"]),
        "acctg-freq": st.sampled_from(["30", "task=30,energy=5"]),
        "network": LINES.filter(lambda text: text not in ("=", "")),
        "mincpus": st.just("16"),
        "wait-all-nodes": st.sampled_from(["0", "1"]),
        "delay_boot": st.just("5"),
        "hint": st.sampled_from(["compute_bound", "nomultithread", "memory_bound"]),
    },
)


@st.composite
def jobs(draw: Callable[..., Any]) -> dict[str, Any]:
    """A job file whose keys fit each other."""
    launcher = draw(st.sampled_from(["srun", "torchrun", "spawn", "plain"]))
    nodes = 1 if launcher == "plain" else draw(st.integers(1, 2))
    job: dict[str, Any] = {"command": ["true"], "launcher": launcher, "nodes": nodes}
    gpus = draw(st.integers(0, 4))
    if gpus:
        job["gpus_per_node"] = draw(st.sampled_from([f"{gpus}", f"a100:{gpus}"]))
        job |= draw(
            _one_of_or_none(
                cpus_per_task=st.integers(1, 8) | st.just("default"), cpus_per_gpu=st.just(2)
            )
        )
    elif launcher == "srun":
        job |= draw(
            _one_of_or_none(ntasks_per_node=st.integers(1, 4), ntasks=st.integers(nodes, 7))
        )
    memory = {"mem": MEMORY, "mem_per_cpu": MEMORY} | ({"mem_per_gpu": MEMORY} if gpus else {})
    job |= draw(_one_of_or_none(**memory))
    first, second = sorted(draw(st.tuples(SECONDS, SECONDS)))
    if draw(st.booleans()):
        job["time"] = draw(times(second // 86_400 * 86_400 + 86_400))
        if draw(st.booleans()):
            job["time_min"] = draw(times(min(first, 3_600)))
    optional = {
        "job_name": NAMES,
        "comment": NAMES,
        "account": IDENTIFIERS,
        "qos": IDENTIFIERS,
        "partition": st.just("gpu"),
        "reservation": IDENTIFIERS,
        "constraint": st.sampled_from(["a & b", "[a|b]", "a*2", "(a|b)&c", "a,b"]),
        "gres": st.sampled_from(["nvme", "nvme:1,tmpdisk:100G", "nvme:fast:2"]),
        "exclusive": st.sampled_from(["true", "user", "mcs", "no"]),
        "nodelist": st.just("n[1]" if nodes == 1 else "n[1-2]"),
        "exclude": st.sampled_from(["n3", "n[3-4,7]", "n[03-04]"]),
        "licenses": st.sampled_from(["matlab", "matlab:2,ansys"]),
        "begin": st.sampled_from(["2030-01-20T12:34", "2031-12-31 1:05:09", "2030-02-03"]),
        "deadline": st.sampled_from(["2130-01-20T12:34", "2131-12-31"]),
        "dependency": st.sampled_from(["7", "afterok:1:2,afterany:3", "after:1+5", "Singleton"]),
        **({} if launcher in ("torchrun", "spawn") else {"signal": SIGNALS}),
        "requeue": st.booleans(),
        "mail_type": st.lists(
            st.sampled_from(["begin", "END", "FAIL", "TIME_LIMIT_80", "ARRAY_TASKS"]),
            min_size=1,
            unique=True,
        ),
        "mail_user": IDENTIFIERS,
        "output": PATHS,
        "error": PATHS,
        "input": st.just("data/in put.txt"),
        "open_mode": st.sampled_from(["append", "truncate"]),
        "chdir": st.sampled_from(["/tmp", "/tmp/a b", "/"]),
        "export": st.sampled_from(["ALL", "none", "NIL", "ALL,A=b c,D=$x", "HOME"]),
        "array": st.sampled_from(["0-3", "1,3,5-7%2", "[0-8:4]%1", "1000"]),
        "sbatch": OTHERS,
    }
    return job | draw(st.fixed_dictionaries({}, optional=optional))


def _one_of_or_none(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    one = [st.fixed_dictionaries({key: values}) for key, values in keys.items()]
    return st.one_of(st.just({}), *one)


def as_sbatch_shows_it(plan: JobPlan, folder: Path) -> dict[str, str]:
    """The plan's directives in the words of "defined options" of Slurm 22.05."""
    shown = {}
    for option, value, _ in plan.directives:
        text = _SHOWN[option](value or "") if option in _SHOWN else value
        if value is None and option in ("exclusive", "requeue", "no-requeue"):
            text = option
        shown[option] = "set" if text is None else text
    base = shown.get("chdir", str(folder))
    for option in ("output", "error", "input"):
        if option in shown:
            shown[option] = f"{base}/{shown[option]}"
    return shown


def _time(value: str) -> str:
    seconds = parse_time(value)
    if seconds is None:
        return "UNLIMITED"
    days, minutes = divmod(-(-seconds // 60), 1440)
    return (f"{days}-" if days else "") + f"{minutes // 60:02}:{minutes % 60:02}:00"


def _memory(value: str) -> str:
    amount, unit = parse_memory(value), 0
    while amount and amount % 1024 == 0:
        amount, unit = amount // 1024, unit + 1
    return f"{amount}{['', 'G', 'T'][unit]}"


def _moment(value: str) -> str:
    date, _, clock = value.replace(" ", "T").partition("T")
    parts = [*clock.split(":"), "0", "0"] if clock else ["0", "0", "0"]
    return f"{date}T{int(parts[0]):02}:{int(parts[1]):02}:{int(parts[2]):02}"


def _signal(value: str) -> str:
    flags, colon, rest = value.rpartition(":")
    name, _, seconds = rest.partition("@")
    name = {"10": "USR1"}.get(name, name)
    return f"{flags}{colon}{name}" + (f"@{seconds}" if seconds not in ("", "60") else "")


_MAIL_ORDER = ("ARRAY_TASKS", "BEGIN", "END", "FAIL", "TIME_LIMIT_80")
_SHOWN: dict[str, Callable[[str], str | None]] = {
    "time": _time,
    "time-min": _time,
    "delay-boot": _time,
    "mem": _memory,
    "mem-per-cpu": _memory,
    "mem-per-gpu": _memory,
    "begin": _moment,
    "deadline": _moment,
    "signal": _signal,
    "open-mode": lambda value: value[0],
    "distribution": lambda value: value.replace("*:", "block:"),
    "mail-type": lambda value: ",".join(word for word in _MAIL_ORDER if word in value.split(",")),
    "switches": lambda value: re.sub("@(.*)", lambda found: f"@{_time(found[1])}", value),
}


# Shrinking would ask sbatch a thousand times; the examples are small as they are.
REPEATABLE = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@settings(REPEATABLE, max_examples=400)
@given(job=jobs(), profile=st.sampled_from(PROFILES))
def test_sbatch_understands_what_the_plan_says(
    oracle: Oracle, job: dict[str, Any], profile: Profile
) -> None:
    plan = resolve(JobSpec(**job), profile)
    assert oracle.read(render(plan)) == as_sbatch_shows_it(plan, oracle.folder)


# What the controller knows and --test-only does not look at.
_NOT_SUBMITTED = ("dependency", "reservation", "constraint", "gres", "exclude", "chdir")


@settings(REPEATABLE, max_examples=25)
@given(job=jobs(), profile=st.sampled_from(PROFILES))
def test_the_controller_keeps_what_the_plan_says(
    oracle: Oracle, job: dict[str, Any], profile: Profile
) -> None:
    for key in _NOT_SUBMITTED:
        job.pop(key, None)
    if oracle.sandbox.version >= "23.11" and job.get("signal", "")[:2].upper() == "R:":
        # 24.11 refuses it where the cluster preempts nothing.
        job["signal"] = job["signal"][2:]
    plan = resolve(JobSpec(**job), profile)
    said = {option: value or "" for option, value, _ in plan.directives}
    shown = oracle.submitted(render(plan))
    first, *lines = shown.split("\n")
    assert first.partition(" JobName=")[2] == said["job-name"]
    # A blank ends the line up to 24.11, and none does on 26.05.
    comments = [line.rstrip(" ") for line in lines if line.startswith("   Comment=")]
    assert comments == ([f"   Comment={said['comment']}".rstrip(" ")] if "comment" in said else [])

    def field(name: str) -> str:
        found = re.search(rf"(?:^|\s){re.escape(name)}=(\S*)", "\n".join(lines))
        return found[1] if found else ""

    assert field("NumNodes").split("-")[0] == str(plan.nodes)
    assert field("NumTasks") == str(plan.layout.ntasks)
    assert field("CPUs/Task") == str(plan.cpus_per_task or 1)
    kind = f"{plan.gpu_type}:" if plan.gpu_type else ""
    gpus = f"gpu:{kind}{plan.gpus_per_node}" if plan.gpus_per_node else ""
    assert _GRES.sub("", field("TresPerNode")) == gpus
    assert field("Requeue") == {"requeue": "1", "no-requeue": "0"}.get(
        next((option for option in said if option.endswith("requeue")), "requeue")
    )
    assert field("TimeLimit") == (_time(said["time"]) if "time" in said else "01:00:00")
    for option, name in (("mem", "MinMemoryNode"), ("mem-per-cpu", "MinMemoryCPU")):
        if option in said:
            assert parse_memory(field(name)) == parse_memory(said[option])
    for option, name in (("licenses", "Licenses"), ("account", "Account")):
        if option in said:
            # Slurm keeps the names of accounts in small letters.
            assert field(name).lower() == said[option].lower()


# Without a backslash before a blank, which 22.05 splits at and 24.11 keeps.
_PIECES = ["a", "b", " ", "\t", "'", '"', "\\a", "\\\\", "\\#", "\\'", '\\"', "#", "=", "ü", "\x0b"]
LINE = st.lists(st.sampled_from([*_PIECES, "\u00a0", "\x85"]), max_size=10).map("".join)


@settings(REPEATABLE, max_examples=400)
@given(line=LINE)
def test_directive_lines_are_read_as_sbatch_reads_them(oracle: Oracle, line: str) -> None:
    script = f"#!/bin/bash\n#SBATCH --comment={line}\n#SBATCH --job-name=last\ntrue\n"
    answer = oracle.sbatch(script, "-vv", "--test-only")
    block = directives.read(script)
    kinds = {problem.kind for problem in block.problems}
    if "unclosed-quote" in kinds:
        assert "Unmatched" in answer.stderr
        return
    if kinds & {"stray-text", "escaped-blank"}:
        assert "Invalid directive found in batch script" in answer.stderr, block
        return
    shown = oracle.read(script)
    assert shown == {d.option: d.value for d in block.directives}
    assert shown["job-name"] == "last"
