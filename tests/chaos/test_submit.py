"""Submissions with whatever can go wrong: each job is there exactly once, and the truth was told.

A person wants jobs, and does after each try what slurmgen said: submits again where nothing was
taken or nobody could say, stops where an id was told. Around the real sbatch of a real Slurm
stands one that fails before or after the job was taken (`sbatch.bash`); slurmgen is killed and
interrupted at random moments; the controller stands still now and then.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING

import pytest

from slurmgen.sandbox import Sandbox, Shape
from tests.chaos import scale
from tests.chaos.forks import Forks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

pytestmark = pytest.mark.slurm

JOBS = scale.times(30, 1000)
AT_ONCE = scale.times(6, 16)
# Seconds of the controller's that a message may take, and slurmgen waits for a hung sbatch.
MESSAGE_TIMEOUT = 5
# What a submission needs is imported beforehand, and waits less.
PREPARE = """\
import slurmgen.cli, slurmgen.cli.commands.submit, slurmgen.lint.engine, slurmgen.lint.job
import slurmgen.lint.registry, slurmgen.script.render, slurmgen.jobfile.job
from slurmgen.slurm.live import handover
handover.TIMEOUT = handover.GRACE = 4.0
"""
FAULTS = (
    "lost-before lost-after lost-underway banner banner-behind signal-before signal-after "
    "hang-before hang-after garbage-before garbage-after silent-before silent-after failed-after "
    "refused"
).split()
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Intended:
    """A job file that is to be submitted `copies` times, and what was told of it."""

    folder: Path
    copies: int
    told: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    tries: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return self.folder.name


class Person:
    """free: what runs slurmgen, as many as submit at once."""

    def __init__(self, sandbox: Sandbox, free: Queue[Forks]) -> None:
        self.sandbox = sandbox
        self.free = free

    def submit(self, intended: Intended, fault: str, *, signal_: int = 0, after: float = 0) -> bool:
        """One try; whether an id was told. What was said is held against what Slurm has."""
        intended.tries[fault or (signal.Signals(signal_).name if signal_ else "none")] += 1
        if fault:
            (intended.folder / "fault").write_text(fault)
        forks = self.free.get()

        def interrupt(pid: int) -> None:
            if signal_:
                time.sleep(after)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal_)

        status, out, said = forks.run(intended.folder, ["submit", "job.yaml"], interrupt)
        self.free.put(forks)
        (intended.folder / "fault").unlink(missing_ok=True)
        told = re.findall(r"^(\d+)$", out) or re.findall(r"job (\d+) was taken; ", said)
        self.judge(intended, status, out, said, signal_, told)
        intended.told += told
        return bool(told)

    def judge(
        self,
        intended: Intended,
        status: int,
        out: str,
        said: str,
        signal_: int,
        told: list[str],
    ) -> None:
        wrong = []
        if len(said) > 20_000 or len(out) > 100:
            wrong.append("echoes what sbatch printed")
        if "bug of slurmgen" in said or "Traceback" in said:
            wrong.append("has a bug")
        if status == 0 and len(told) != 1:
            wrong.append("ends with 0 and tells no id")
        if status not in (0, 3) and not signal_:
            wrong.append(f"ends with status {status}")
        known = self.jobs(intended.name)
        if told and told[0] not in known:
            wrong.append(f"tells the id {told[0]}, which is no job's")
        open_ = "may have been taken" in said or "still runs" in said or signal_ == signal.SIGKILL
        if not told and not open_ and len(known) > len(set(intended.told)) and intended.copies == 1:
            wrong.append("says nothing of a job that was taken")
        intended.wrong += [f"{text}: status {status}, {out!r}, {said!r}" for text in wrong]

    def jobs(self, name: str) -> set[str]:
        for _ in range(20):
            listed = self.sandbox.run(
                ["squeue", "--noheader", "--states=all", f"--name={name}", "--format=%i"]
            )
            if listed.returncode == 0:
                return set(listed.stdout.split())
        raise AssertionError(listed.stderr)

    def want(self, intended: Intended, fault: str, signal_: int, after: float) -> None:
        """Until an id was told for each copy."""
        if intended.copies == 2:
            with ThreadPoolExecutor(2) as both:
                one = both.submit(self.submit, intended, fault, signal_=signal_, after=after)
                other = both.submit(self.submit, intended, "")
                missing = [one.result(), other.result()].count(False)
        else:
            missing = 1 - self.submit(intended, fault, signal_=signal_, after=after)
        for _ in range(10):
            if missing <= 0:
                break
            missing -= self.submit(intended, "")
        if missing:
            intended.wrong.append("was submitted ten times in vain")


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    shape = Shape(nodes=1, gpus_per_node=0, extra_conf=(f"MessageTimeout={MESSAGE_TIMEOUT}",))
    folder = tmp_path_factory.mktemp("sandbox")
    with Sandbox.up(name="chaos", shape=shape, directory=folder) as sandbox:
        yield sandbox


def test_each_job_is_there_once_and_the_truth_was_told(sandbox: Sandbox, tmp_path: Path) -> None:
    chance = scale.chance("submit")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sbatch").symlink_to(Path(__file__).with_name("sbatch.bash"))
    environment = sandbox.environment()
    environment |= {
        "REAL_SBATCH": str(shutil.which("sbatch")),
        "PATH": f"{programs}{os.pathsep}{environment['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    free: Queue[Forks] = Queue()
    for _ in range(2 * AT_ONCE):
        free.put(Forks(environment, PREPARE))
    person = Person(sandbox, free)
    wanted = []
    for number in range(JOBS):
        folder = tmp_path / f"j{number}"
        folder.mkdir()
        (folder / "job.yaml").write_text(
            f"job_name: j{number}\ntime: 1m\noutput: logs/%j.out\nsbatch: {{hold: true}}\n"
            "command: 'true'\n"
        )
        kind = number % (len(FAULTS) + 10)
        fault = FAULTS[kind] if kind < len(FAULTS) else ""
        signal_ = 0 if fault or kind == len(FAULTS) else SIGNALS[kind % len(SIGNALS)]
        after = chance.uniform(0, 0.6) if signal_ else 0.0
        copies = 2 if chance.random() < 0.15 else 1
        wanted.append((Intended(folder, copies), fault, signal_, after))
    chance.shuffle(wanted)

    done = threading.Event()
    halts = threading.Thread(target=_halt_now_and_then, args=(sandbox, chance, done))
    halts.start()
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for finished in [pool.submit(person.want, *one) for one in wanted]:
                finished.result()
    finally:
        done.set()
        halts.join()
        while not free.empty():
            free.get().close()

    tries: Counter[str] = Counter()
    wrong = []
    for intended, *what in wanted:
        tries += intended.tries
        known = person.jobs(intended.name)
        if set(intended.told) != known or len(known) != intended.copies:
            intended.wrong.append(f"told {intended.told}, there are {known}")
        if not (intended.folder / "logs").is_dir():
            intended.wrong.append("its jobs have no folder for their logs")
        wrong += [(intended.name, intended.copies, what, text) for text in intended.wrong]
    print(f"\n{JOBS} jobs, seed {scale.SEED}: {sum(tries.values())} submissions: {dict(tries)}")
    left = list((tmp_path / "state").rglob("sbatch"))
    assert not wrong, "\n".join(map(str, wrong))
    assert not left


def _halt_now_and_then(sandbox: Sandbox, chance: Random, done: threading.Event) -> None:
    """The controller stands still for longer than slurmgen waits for sbatch, and goes on."""
    controller = int((sandbox.folder.path / "slurmctld.pid").read_text())
    while not done.wait(chance.uniform(5, 15)):
        os.kill(controller, signal.SIGSTOP)
        try:
            done.wait(chance.uniform(1, 7))
        finally:
            os.kill(controller, signal.SIGCONT)
