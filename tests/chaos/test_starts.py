"""Starts that are killed at random moments: of a sandbox, of a rehearsal, of a command in one, of a
run on this machine. What each has begun is gone soon after.

A start is known by its folder, whose path is in the variables, the words or the working folder of
all that it starts.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import Sandbox, Shape, network, programs, statuses
from tests.chaos import scale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).resolve().parents[2]
SLURMGEN = (sys.executable, "-m", "slurmgen")
# What is promised, in seconds; a busy machine takes longer than that, and is still to clean up.
PROMISED, PATIENCE = 10.0, 120.0
# KILL is what nothing can answer.
SIGNALS = (*[signal.SIGKILL] * 6, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# Leaves its session, its step and its variables behind; what it watches tells whose it is.
JOB = """\
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=2
touch watched
(env -i /usr/bin/setsid /usr/bin/tail -f "$PWD/watched" < /dev/null &> /dev/null &)
srun --overlap python train.py
"""
RUN = "ntasks: 2\nddp: train.py\n"
PROGRAM = "import pathlib, time\npathlib.Path('trains').touch()\ntime.sleep(600)\n"


class Start(NamedTuple):
    """What is started in a folder of its own, and how many seconds it takes at most."""

    arguments: Callable[[Path, Random], list[str]]
    seconds: float


def sandbox_up(folder: Path, chance: Random) -> list[str]:
    return ["sandbox", "up", "--dir", str(folder / "box"), "--nodes", str(chance.randint(1, 4))]


def sandbox_with_networks(folder: Path, chance: Random) -> list[str]:
    return [*sandbox_up(folder, chance), "--netns"]


def rehearsal(folder: Path, _chance: Random) -> list[str]:
    return ["rehearse", str(folder / "job.sh")]


def real_rehearsal(folder: Path, chance: Random) -> list[str]:
    return [*rehearsal(folder, chance), "--real"]


def command_in_a_sandbox(folder: Path, _chance: Random) -> list[str]:
    command = ["tail", "-f", str(folder / "job.sh")]
    return ["sandbox", "exec", "--dir", str(folder.parent / "shared"), "--", *command]


def run_here(folder: Path, _chance: Random) -> list[str]:
    return ["run", str(folder / "job.yaml")]


STARTS = {
    "sandbox up": Start(sandbox_up, 3),
    "sandbox up --netns": Start(sandbox_with_networks, 4),
    "rehearse": Start(rehearsal, 6),
    "rehearse --real": Start(real_rehearsal, 6),
    "sandbox exec": Start(command_in_a_sandbox, 2),
    "run": Start(run_here, 8),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of all starts, with a sandbox that is up."""
    try:
        programs.find_programs()
    except UnavailableError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("starts")
    with Sandbox.up(shape=Shape(nodes=1), directory=folder / "shared"):
        yield folder


def test_nothing_is_left_of_a_start_that_was_killed(shared: Path) -> None:
    kinds = [kind for kind in STARTS if kind != "sandbox up --netns" or has_networks()]
    count = scale.times(2 * len(kinds), 504)
    chance = scale.chance("starts")
    plans = [
        (number, kinds[number % len(kinds)], chance.randrange(1 << 30)) for number in range(count)
    ]
    # Most of a start is waiting; more at once only make each other slower.
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda plan: kill_one(shared, *plan), plans))
    left = {f"{one.kind} {one.number}": one.left for one in ended if one.left}
    took = sorted(one.took for one in ended)
    by_kind = Counter(one.kind for one in ended)
    sys.stdout.write(
        f"\n{count} starts killed ({', '.join(f'{n} {kind}' for kind, n in by_kind.items())}): "
        f"gone after {statistics.median(took):.1f} s in the median, {took[-1]:.1f} s at most; "
        f"{sum(one > PROMISED for one in took)} later than {PROMISED:.0f} s; {len(left)} never\n"
    )
    assert left == {}


class Ended(NamedTuple):
    """A start that was killed, how long something of it was left, and what stayed for good."""

    kind: str
    number: int
    took: float
    left: list[str]


def kill_one(shared: Path, number: int, kind: str, seed: int) -> Ended:
    from random import Random

    chance = Random(seed)
    # Of equal length, so that no name is the beginning of another.
    folder = shared / f"start-{number:04d}"
    for part in ("", "tmp", "home"):
        (folder / part).mkdir()
    (folder / "job.sh").write_text(JOB)
    (folder / "job.yaml").write_text(RUN)
    (folder / "train.py").write_text(PROGRAM)
    process = subprocess.Popen(
        [*SLURMGEN, *STARTS[kind].arguments(folder, chance)],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "STARTED_IN": str(folder),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if kind == "run" and chance.random() < 0.5:
        # It takes long until ranks train, and that is when most would be left.
        end = time.monotonic() + PATIENCE
        while not (folder / "trains").exists() and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.05)
    else:
        time.sleep(chance.uniform(0, STARTS[kind].seconds))
    number_of_signal = chance.choice(SIGNALS)
    if signal.getsignal(number_of_signal) is signal.SIG_IGN:
        # Of a shell's background; what is started inherits it.
        number_of_signal = signal.SIGKILL
    # As a terminal has it: Ctrl-C goes to all that run there.
    whole_group = number_of_signal == signal.SIGINT or chance.random() < 0.3
    with suppress(ProcessLookupError):
        (os.killpg if whole_group else os.kill)(process.pid, number_of_signal)
    process.wait(PATIENCE)
    if kind.startswith("sandbox up") and is_up(folder / "box"):
        # It was up before it was killed, and is wanted.
        subprocess.run(
            [*SLURMGEN, "sandbox", "down", "--dir", str(folder / "box")],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
    start = time.monotonic()
    # torchrun's own temporary folder stays when that is killed.
    own = () if kind == "run" else ("tmp", "box")
    while (left := remains(folder, own)) and time.monotonic() - start < PATIENCE:
        time.sleep(0.05)
    took = time.monotonic() - start
    if not left:
        shutil.rmtree(folder)
    return Ended(kind, number, took, left)


def is_up(directory: Path) -> bool:
    """Whether the sandbox there is, or comes to be known not to be: its guard may be at work."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        states = [status.state for status in statuses(directory=directory)]
        if not states or (states == ["up"] and not guards(directory)):
            return bool(states)
        time.sleep(0.05)
    return False


def guards(directory: Path) -> list[str]:
    """The guards of starts there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = os.fsdecode((entry / "cmdline").read_bytes()).split("\0")
            if any(word.endswith("/sandbox/guard.py") for word in words) and any(
                word.startswith(f"{directory}/") for word in words
            ):
                found.append(entry.name)
    return found


def remains(folder: Path, own: tuple[str, ...]) -> list[str]:
    """Processes, mounts, and what lies in those of its folders where only slurmgen writes."""
    name = os.fsencode(str(folder))
    found = [str(path) for part in own for path in folder.glob(f"{part}/*")]
    if name in Path("/proc/self/mountinfo").read_bytes():
        found.append("a mount")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            known = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            if name in known or os.fsencode(os.readlink(entry / "cwd")).startswith(name):
                found.append(f"{entry.name} {known[:200]!r}")
    return found


def has_networks() -> bool:
    try:
        network.require_networks()
    except UnavailableError:
        return False
    return True
