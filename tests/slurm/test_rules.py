"""Rules of lint on a real Slurm: the example fails as the rule says, the better way runs.

Programs are played by a stub that writes down its arguments and environment; what Slurm and
Bash do with the scripts is real.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from slurmgen.lint import documentation, registry
from slurmgen.sandbox import Sandbox, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(shutil.which("slurmctld") is None, reason="slurmctld is not installed"),
]

PROBE = Path(__file__).with_name("probe.py")
PROGRAM = f"""import os, runpy
os.environ.setdefault("PROBE_FOLDER", os.getcwd())
runpy.run_path({str(PROBE)!r})
"""
STUBS = ("python", "python3", "torchrun", "accelerate", "deepspeed", "apptainer", "singularity")


class Seen(NamedTuple):
    """What came of a script.

    refusal: what sbatch said where it did not take it. job: `scontrol show job`. runs: what
    each start of a stub saw. state, status: how the job ended. log: its output.
    """

    refusal: str
    job: dict[str, str]
    runs: list[dict[str, Any]]
    state: str
    status: int
    log: str

    def env(self, name: str) -> list[str | None]:
        """A variable's value in each run."""
        return [run["env"].get(name) for run in self.runs]


class Slurm:
    """Submits scripts to a sandbox, each in a folder of its own."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.folder = folder
        self.count = 0
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in STUBS:
            stub = self.bin / name
            stub.write_text(
                f'#!/bin/sh\n{sys.executable} {PROBE} {name} "$@"\nexit ${{STUB_STATUS:-0}}\n'
            )
            stub.chmod(0o755)

    @property
    def release(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.sandbox.version.split(".")[:2])

    def run(self, files: dict[str, str], **environment: str) -> Seen:
        """Submit `job.sbatch` among the files and wait for its end."""
        self.count += 1
        folder = self.folder / f"job{self.count}"
        # For the real Python, where a job has lost the PATH with the stubs in it.
        files = {"train.py": PROGRAM, **files}
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        env = {**self.sandbox.environment(), "PROBE_FOLDER": str(folder), **environment}
        env["PATH"] = os.pathsep.join([str(self.bin), env["PATH"]])
        answer = self._call(["sbatch", "--parsable", "job.sbatch"], env, folder)
        if answer.returncode:
            return Seen(answer.stderr, {}, [], "", answer.returncode, "")
        number = answer.stdout.strip().split(";")[0]
        job = self._wait(number, env, folder)
        runs = [json.loads(path.read_bytes()) for path in sorted(folder.glob("seen-*"))]
        status = int(job.get("ExitCode", "0:0").split(":")[0])
        log = Path(job.get("StdOut", "/nowhere"))
        shown = log.read_text(errors="replace") if log.is_file() else ""
        return Seen("", job, runs, job["JobState"], status, shown)

    def _wait(self, number: str, env: dict[str, str], folder: Path) -> dict[str, str]:
        self._call(
            ["srun", "--overlap", "-Q", "--dependency", f"afterany:{number}", "-n1", "true"],
            env,
            folder,
        )
        answer = self._call(["scontrol", "-o", "show", "job", number], env, folder)
        words = (word.partition("=") for word in answer.stdout.split())
        return {name: value for name, _, value in words}

    def _call(
        self, command: list[str], env: dict[str, str], folder: Path
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=env, cwd=folder, capture_output=True, text=True, timeout=120
        )


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Two nodes with eight pretend GPUs each."""
    folder = tmp_path_factory.mktemp("rules")
    shape = Shape(nodes=2, gpus_per_node=8)
    with Sandbox.up(name="rules", shape=shape, directory=folder / "sandbox") as sandbox:
        yield Slurm(sandbox, folder)


def examples(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """The files of a rule's example, and of the better way."""
    rule = registry.find(name)
    assert rule is not None
    page = documentation.read(rule)
    wrong = page.files("Example")
    return wrong, {**wrong, **page.files("Use instead")}


@pytest.mark.parametrize(
    "name",
    [
        "directive-stray-text",
        "unknown-option",
        "mutually-exclusive-options",
        "bad-gres",
        "missing-shebang",
        "crlf-line-endings",
        "directive-unclosed-quote",
    ],
)
def test_slurm_refuses_the_example(slurm: Slurm, name: str) -> None:
    wrong, right = examples(name)
    assert slurm.run(wrong).refusal
    assert slurm.run(right).refusal == ""


def test_nodes_that_are_too_many_are_refused_or_not_all_given(slurm: Slurm) -> None:
    wrong, right = (slurm.run(files) for files in examples("nodelist-mismatch"))
    if slurm.release >= (24, 11):
        assert (wrong.refusal, wrong.job["NumNodes"]) == ("", "1")
    else:
        assert "invalid number of nodes (-N 2-1)" in wrong.refusal
    assert (right.refusal, right.job["NumNodes"]) == ("", "2")


ASKED = ("NumNodes", "NumTasks", "NumCPUs", "TimeLimit", "MinMemoryNode", "TresPerNode", "StdOut")


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("directive-after-command", ("NumNodes", "NumTasks", "TimeLimit", "TresPerNode")),
        ("directive-not-recognised", ("NumNodes", "NumTasks", "TimeLimit", "TresPerNode")),
        ("directive-continuation", ("NumNodes", "NumTasks", "TimeLimit", "TresPerNode")),
        ("directive-variable", ("StdOut", "JobName", "StdErr")),
        ("abbreviated-option", ("NumTasks", "NumNodes")),
        ("time-in-minutes", ("TimeLimit",)),
        ("mem-unit-missing", ("MinMemoryNode", "MinMemoryCPU")),
        ("ntasks-fewer-than-nodes", ("NumNodes",)),
    ],
)
def test_slurm_reads_the_example_otherwise(
    slurm: Slurm, name: str, fields: tuple[str, ...]
) -> None:
    wrong, right = (slurm.run(files) for files in examples(name))
    assert wrong.refusal == right.refusal == ""
    asked = [{f: s.job.get(f) for f in fields} for s in (wrong, right)]
    assert asked[0] != asked[1]


def one_gpu_for_all(seen: Seen) -> bool:
    return "--gpus-per-node and --gres=gpu are mutually exclusive" in seen.log or (
        len(seen.runs) > 1
        and len(set(seen.env("CUDA_VISIBLE_DEVICES"))) == 1
        and ("," not in (seen.env("CUDA_VISIBLE_DEVICES")[0] or ""))
    )


def same_rank(seen: Seen) -> bool:
    return len(seen.runs) > 1 and set(seen.env("RANK")) == {"0"}


def several_ports(seen: Seen) -> bool:
    return len(set(seen.env("MASTER_PORT"))) > 1


def launchers_collide(seen: Seen) -> bool:
    started = [run["env"]["SLURM_NODEID"] for run in seen.runs]
    return len(started) > len(set(started))


def alone_of_many(seen: Seen) -> bool:
    return len(seen.runs) == 1 and int(seen.env("SLURM_NTASKS")[0] or 1) > 1


def starts_nothing(seen: Seen) -> bool:
    return seen.runs == [] and seen.state != "COMPLETED"


def no_gpu_seen(seen: Seen) -> bool:
    # 20.11 says so in a word.
    return any(value in (None, "", "NoDevFiles") for value in seen.env("CUDA_VISIBLE_DEVICES"))


def loses_words(seen: Seen) -> bool:
    return "command not found" in seen.log


def looks_in_the_spool(seen: Seen) -> bool:
    return any("slurmd" in word or "spool" in word for run in seen.runs for word in run["argv"])


def shell_fails(seen: Seen) -> bool:
    return "not found" in seen.log or "yntax error" in seen.log or "Bad substitution" in seen.log


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("srun-narrows-gpus", one_gpu_for_all),
        ("rank-expanded-early", same_rank),
        ("port-per-process", several_ports),
        ("double-launch", launchers_collide),
        ("srun-missing", alone_of_many),
        ("export-none-srun", starts_nothing),
        ("srun-export-drops-env", starts_nothing),
        ("gpu-not-requested", no_gpu_seen),
        ("broken-continuation", loses_words),
        ("script-dir-spool", looks_in_the_spool),
        ("sh-shebang-bashism", shell_fails),
        ("log-dir-missing", starts_nothing),
    ],
)
def test_the_example_shows_the_fault(
    slurm: Slurm, name: str, fault: Callable[[Seen], bool]
) -> None:
    wrong, right = examples(name)
    found = slurm.run(wrong)
    assert found.refusal == ""
    assert fault(found) == is_a_fault_of(slurm.release, name), found
    if name == "log-dir-missing":
        right = {**right, "logs/.keep": ""}
    better = slurm.run(right)
    assert better.refusal == ""
    assert not fault(better), better
    assert better.runs or better.state == "COMPLETED"


def is_a_fault_of(release: tuple[int, ...], name: str) -> bool:
    if name == "gpu-not-requested":
        # --exclusive was for the GPUs too.
        return release >= (22, 5)
    rule = registry.find(name)
    assert rule is not None
    return rule.until is None or release < tuple(int(part) for part in rule.until.split("."))


def test_a_failure_is_masked(slurm: Slurm) -> None:
    wrong, right = examples("exit-status-masked")
    assert slurm.run(wrong, STUB_STATUS="3").state == "COMPLETED"
    assert slurm.run(right, STUB_STATUS="3").state == "FAILED"
