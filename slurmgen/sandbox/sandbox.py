"""Sandbox: a throwaway real Slurm on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import UnavailableError, UsageError
from slurmgen.interruption import Interruptions
from slurmgen.sandbox import accounting as accounts
from slurmgen.sandbox import release
from slurmgen.sandbox.folder import Folder, sandbox_names
from slurmgen.sandbox.guard import guarded
from slurmgen.sandbox.network import Network, require_networks
from slurmgen.sandbox.processes import running_daemons
from slurmgen.sandbox.programs import find_programs
from slurmgen.sandbox.removal import DEFAULT_NAME, clear, refuse_foreign, remove
from slurmgen.sandbox.shape import Shape
from slurmgen.sandbox.startup import Reach, start

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType, TracebackType

# What a shell may carry over from a real cluster, or from a job that it runs in.
_STRAY_VARIABLES = (
    "SACCT_",
    "SALLOC_",
    "SBATCH_",
    "SCANCEL_",
    "SCONTROL_",
    "SINFO_",
    "SLURM_",
    "SLURMD_",
    "SPRIO_",
    "SQUEUE_",
    "SRUN_",
)
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP)


class Status(NamedTuple):
    """One sandbox of this user, for `slurmgen sandbox status`.

    state: `up`; `degraded`, where a node's slurmd is gone; `down`, where only remains of
    a crash are left; `starting`; `elsewhere`, where another machine started it.
    """

    name: str
    version: str
    nodes: int
    state: str
    slurm_conf: Path


@dataclass(frozen=True)
class Sandbox:
    """A Slurm that is up: own ports, own munge, own state, pretended nodes and GPUs.

    As a context manager it goes down at the end of the `with`.

    unpacked: the version that its commands have to be shown, where it isn't this machine's own.
    """

    name: str
    shape: Shape
    version: str
    reach: Reach
    folder: Folder
    unpacked: str = ""

    @classmethod
    def up(
        cls,
        *,
        name: str = DEFAULT_NAME,
        shape: Shape | None = None,
        directory: Path | None = None,
        netns: bool = False,
        accounting: bool = False,
        slurm: str = "",
    ) -> Sandbox:
        """Start the sandbox `name` and return when every node takes jobs.

        directory: holds a folder for each sandbox; by default the user's own
        ($XDG_STATE_HOME/slurmgen/sandbox).
        netns: gives each node a network of its own; takes root.
        accounting: with slurmdbd and MariaDB, so that sacct works.
        slurm: the version (`24.11`); by default what this machine has.

        Remains of a crashed one are cleared away first. If it fails, is interrupted or killed, no
        process and no folder is left. `UsageError` if it is up already, `UnavailableError` if
        Slurm is missing or does not start, or if `netns`, `accounting` or `slurm` can't be had.
        """
        shape = shape or Shape()
        programs = find_programs(slurm)
        if netns:
            require_networks()
        if accounting:
            accounts.find_programs(programs.unpacked)
        folder = Folder.of(name, directory)
        with folder.locked(), Interruptions() as interruptions, guarded(folder.path):
            refuse_foreign(name, folder)
            if running_daemons(folder.path).controller:
                raise UsageError(
                    f"sandbox {name!r} is up already",
                    fix=f"slurmgen sandbox down {_options(name, directory)}",
                )
            clear(folder)
            try:
                folder.create()
                reach = start(
                    folder, shape, programs, interruptions, netns=netns, accounting=accounting
                )
                sandbox = cls(name, shape, programs.version, reach, folder, programs.unpacked)
                sandbox._describe()
                interruptions.check()
            except OSError as error:
                clear(folder)
                raise UnavailableError(
                    f"the sandbox can't have its folder {folder.path}: {error.strerror}",
                    fix="use a folder where you may write, with some MiB free (--dir)",
                ) from error
            except BaseException:
                clear(folder)
                raise
        return sandbox

    @classmethod
    def find(cls, name: str = DEFAULT_NAME, *, directory: Path | None = None) -> Sandbox:
        """The sandbox `name`, which is up; `UnavailableError` if it isn't."""
        folder = Folder.of(name, directory)
        sandbox = _read(name, folder)
        if (
            sandbox is None
            or folder.foreign_host() is not None
            or not running_daemons(folder.path).controller
        ):
            raise UnavailableError(
                f"no sandbox {name!r} is up on this machine",
                fix=f"slurmgen sandbox up {_options(name, directory)}",
            )
        return sandbox

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.down()

    @property
    def loopback_only(self) -> bool:
        """Whether every daemon listens on loopback addresses only."""
        return self.reach.loopback_only

    @property
    def slurm_conf(self) -> Path:
        """The file to name in SLURM_CONF."""
        return self.folder.slurm_conf

    def environment(self) -> dict[str, str]:
        """This process's environment, made to reach the sandbox and nothing else.

        SLURM_CONF is set; every other variable that Slurm's commands heed is left out.
        """
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_STRAY_VARIABLES)
        }
        return {**kept, "SLURM_CONF": str(self.slurm_conf)}

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 60,
        cwd: Path | None = None,
        given: str | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the sandbox and return its status and output.

        given: its standard input; empty if left out.
        extra: variables to add to `environment()`.

        A failing command raises nothing; one that can't be run or takes longer than
        `timeout` seconds raises `UnavailableError`.
        """
        try:
            return subprocess.run(
                release.command(self.unpacked, argv),
                input=given or "",
                capture_output=True,
                text=True,
                cwd=cwd,
                env={**self.environment(), **(extra or {})},
                timeout=timeout,
                check=False,
            )
        except OSError as error:
            raise UnavailableError(
                f"can't run {argv[0]}: {error.strerror}", fix="check its name and PATH"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(
                f"{argv[0]} took longer than {timeout:g} s in sandbox {self.name!r}",
                fix=f"look at {self.folder.controller_log}",
            ) from error

    def execute(self, argv: Sequence[str]) -> int:
        """Run a command on this terminal, for as long as it takes; return its status.

        It doesn't outlive this process. As a shell has it: 127 if there is no such command, 126 if
        it can't be run, 128 + N if signal N ended it.
        """
        try:
            process = subprocess.Popen(
                release.command(self.unpacked, argv, parent=os.getpid()), env=self.environment()
            )
        except FileNotFoundError:
            return 127
        except OSError:
            return 126
        with _passing_signals(process):
            status = process.wait()
        return status if status >= 0 else 128 - status

    def down(self) -> None:
        """Stop it, its jobs included, and delete its folder; again is harmless."""
        remove(self.name, directory=self.folder.path.parent)

    def _describe(self) -> None:
        content = {
            "version": self.version,
            "unpacked": self.unpacked,
            "loopback_only": self.reach.loopback_only,
            "network": str(self.reach.network.block) if self.reach.network else "",
            "shape": dataclasses.asdict(self.shape),
        }
        self.folder.description.write_text(json.dumps(content))


def statuses(*, directory: Path | None = None) -> list[Status]:
    """Every sandbox of this user, by name."""
    found = []
    for name in sandbox_names(directory):
        folder = Folder.of(name, directory)
        sandbox = _read(name, folder)
        found.append(
            Status(
                name=name,
                version=sandbox.version if sandbox else "",
                nodes=sandbox.shape.node_count if sandbox else 0,
                state=_state(folder, sandbox),
                slurm_conf=folder.slurm_conf,
            )
        )
    return found


def _options(name: str, directory: Path | None) -> str:
    """The options by which a command line reaches the sandbox."""
    where = f" --dir {shlex.quote(str(directory))}" if directory else ""
    return f"--name {name}{where}"


def _state(folder: Folder, sandbox: Sandbox | None) -> str:
    if folder.foreign_host() is not None:
        return "elsewhere"
    daemons = running_daemons(folder.path)
    if sandbox is None:
        return "starting" if folder.is_locked() else "down"
    if not daemons.controller:
        return "down"
    return "up" if len(daemons.nodes) == sandbox.shape.node_count else "degraded"


def _read(name: str, folder: Folder) -> Sandbox | None:
    try:
        content = json.loads(folder.description.read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return Sandbox(
        name=name,
        shape=Shape.of_description(content["shape"]),
        version=content["version"],
        reach=Reach(
            loopback_only=content["loopback_only"],
            network=Network.of(content["network"]) if content["network"] else None,
        ),
        folder=folder,
        unpacked=content["unpacked"],
    )


@contextlib.contextmanager
def _passing_signals(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Until the command ends, signals are its business; Ctrl-C reaches it by itself."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    previous = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    previous[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
