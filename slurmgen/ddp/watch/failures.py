"""How a run failed: what each rank says of it, which rank was first, and the file that names it."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slurmgen.ddp import files
from slurmgen.ddp.failure import EXIT_LAUNCH, EXIT_LOST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurmgen.ddp.launch.identity import Identity

VARIABLE = "SLURMGEN_FAILURE"
"""Names the file; the rendered script puts it beside the job's log. Empty: no file."""

KINDS = "exception", "exit", "signal", "launch", "lost", "hang"

SECONDARY_S = 3.0
"""How long the failure of a rank that lost a peer waits for that of the peer."""

_FORMAT = 1
_OTHERS = 64
_LINES = 15

_LOST_PEER = re.compile(
    r"DistError|DistNetworkError|DistBackendError|Connection (closed|reset|refused) by|"
    r"Connection closed|Connection reset|Broken pipe|Socket closed|Read error \[|"
    r"ncclRemoteError|remote process exited|NCCL watchdog|Watchdog caught collective|"
    r"timed out in call to|before that, rank \d+|had ended well, but the run failed"
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


@dataclass
class Failure:
    """The end of one rank, as its supervisor saw it.

    kind: "exception", "exit" (a status without a traceback), "signal", "launch" (status 78),
    "lost" (no contact) or "hang". status: what a launcher makes of it, 128 + n for signal n.
    secondary: it lost a peer, or was told to end; another rank may have been first. steps: how
    often the rank had got on. traceback, stderr: what Python and the program said last.
    """

    rank: int
    node: str
    host: str
    local_rank: int
    kind: str
    status: int
    text: str
    signal: str = ""
    secondary: bool = False
    steps: int = 0
    time: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%S%z"))
    traceback: str = ""
    stderr: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"rank {self.rank} on {self.node} (local rank {self.local_rank})"

    def dump(self) -> dict[str, Any]:
        """For the wire and the file."""
        return asdict(self)


def lost_peer(text: str) -> bool:
    """Whether a traceback or the last lines of stderr speak of a peer that is gone."""
    return _LOST_PEER.search(text) is not None


def describe(code: int, number: int | None, killed: bool) -> tuple[str, str, str]:
    """kind, name of the signal and words for a rank that ended with `code` or by a signal."""
    if number is not None:
        name = signal_name(number)
        hint = "; out of memory?" if number == signal.SIGKILL and not killed else ""
        return "signal", name, f"killed by signal {number} ({name}{hint})"
    if code == EXIT_LAUNCH:
        return "launch", "", f"refused to start (exit code {code})"
    return "exit", "", f"ended with exit code {code}"


def signal_name(number: int) -> str:
    """ABRT for 6; the number itself where it has no name."""
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return str(number)


class Inquest:
    """Decides which failure came first: in the order in which they are heard of, but one that
    names a lost peer as its cause only if nothing better is heard of for a while."""

    def __init__(self) -> None:
        self.heard: list[Failure] = []
        self._since = 0.0

    def add(self, failure: Failure) -> None:
        """One more rank that failed; only the first word of each counts."""
        if all(failure.rank != other.rank for other in self.heard):
            if not self.heard:
                self._since = time.monotonic()
            self.heard.append(failure)

    def first(self, *, wait: bool = False) -> Failure | None:
        """The first failure; None while there is none, or a better one may still come.

        wait: somebody is silent, and may turn out to be lost.
        """
        for failure in self.heard:
            if not failure.secondary:
                return failure
        if self.heard and not wait and time.monotonic() - self._since > SECONDARY_S:
            return self.heard[0]
        return None


def lost(rank: int, node: str, host: str, local_rank: int, why: str, witness: str) -> Failure:
    """A rank with which there is no contact any more."""
    text = f"lost contact with it ({why}), says {witness}"
    return Failure(rank, node, host, local_rank, "lost", EXIT_LOST, text)


def suspects(steps: Mapping[int, int], stacks: Mapping[int, str]) -> list[int]:
    """The ranks that a hang is likely due to: those that are behind, or that are elsewhere.

    The others wait for them, in the same place as each other. Empty where that tells nothing.
    """
    ranks = sorted(set(steps) | set(stacks))
    behind = [rank for rank in ranks if steps.get(rank, 0) == min(steps.values(), default=0)]
    if len(behind) < len(ranks):
        return behind
    places: dict[str, list[int]] = {}
    for rank in ranks:
        places.setdefault(_where(stacks.get(rank, "")), []).append(rank)
    few = min(places.values(), key=len, default=[])
    return few if 2 * len(few) < len(ranks) or len(ranks) == 1 else []


def _where(stack: str) -> str:
    """The frames of the thread that faulthandler lists last, the main one."""
    return stack.rpartition("most recent call first")[2].strip()


def grouped(stacks: Mapping[int, str]) -> list[dict[str, Any]]:
    """Equal stacks once, with the ranks that have them."""
    groups: dict[str, list[int]] = {}
    for rank, stack in sorted(stacks.items()):
        groups.setdefault(_ADDRESS.sub("0x…", stack), []).append(rank)
    return [{"ranks": ranks, "stack": stack} for stack, ranks in groups.items()]


def path_of(env: Mapping[str, str], identity: Identity) -> Path | None:
    """Where the file goes: SLURMGEN_FAILURE, or for a job the working directory; else nowhere."""
    given = env.get(VARIABLE)
    if given is not None:
        return Path(given).absolute() if given else None
    if "SLURM_JOB_ID" not in env:
        return None
    name = env["SLURM_JOB_ID"]
    if "SLURM_ARRAY_JOB_ID" in env and "SLURM_ARRAY_TASK_ID" in env:
        name = f"{env['SLURM_ARRAY_JOB_ID']}_{env['SLURM_ARRAY_TASK_ID']}"
    if identity.source != "single" and "SLURM_STEP_ID" in env:
        name = f"{name}.{env['SLURM_STEP_ID']}"
    return Path(f"slurmgen-failure-{name}.json").absolute()


def forget(path: Path | None) -> None:
    """Remove what an earlier run of the job has left, so that it isn't taken for this one's."""
    if path is not None:
        with suppress(OSError):
            path.unlink()


def write(
    path: Path,
    identity: Identity,
    first: Failure,
    heard: Sequence[Failure],
    stacks: Mapping[int, str],
    env: Mapping[str, str],
) -> bool:
    """Write the file whole, or not at all where there is one already. Returns whether it did.

    Raises OSError where the folder can't be written to.
    """
    others = [other for other in heard if other is not first]
    content = {
        "format": _FORMAT,
        "run": identity.job,
        "restart": int(env.get("SLURM_RESTART_COUNT") or 0),
        "attempt": identity.attempt,
        "world_size": identity.world_size,
        "first": first.dump(),
        "others": [
            {**other.dump(), "traceback": other.traceback[-2000:], "stderr": other.stderr[-5:]}
            for other in others[:_OTHERS]
        ],
        "others_left_out": max(len(others) - _OTHERS, 0),
        "stacks": grouped(stacks),
    }
    temporary = path.with_name(f".{path.name}.{files.unguessable()}")
    # What a program said may hold half a character.
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    try:
        with files.create(temporary) as file:
            file.write(text.encode(errors="replace"))
            file.flush()
            os.fsync(file.fileno())
        try:
            # Unlike rename, never in place of what another survivor has written.
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:
            # A file system without hard links.
            if path.exists():
                return False
            temporary.rename(path)
        return True
    finally:
        with suppress(OSError):
            temporary.unlink()


def words(first: Failure, heard: Sequence[Failure], *, own_rank: int, where: str) -> str:
    """What is said of it on stderr, in a few lines."""
    lines = [f"first failure: {first.place}: {first.text}"]
    if first.rank != own_rank:
        # Its own log may be on another node, and is far up in a shared one.
        said = first.traceback.splitlines() or first.stderr
        lines += [f"  | {line}" for line in said[-_LINES:]]
    others = sorted(other.rank for other in heard if other is not first)
    if others:
        shown = ", ".join(map(str, others[:20])) + (", ..." if len(others) > 20 else "")
        lines.append(f"  = also: rank(s) {shown}")
    if where:
        lines.append(f"  = see: {where}")
    return "\n".join(lines)
