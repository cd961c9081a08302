"""The folder of a rehearsal: stand-ins for the job's programs, and what they write down."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.errors import UnavailableError
from slurmgen.sandbox import deadlines
from slurmgen.sandbox.rehearsal import guard
from slurmgen.sandbox.rehearsal.gate import Gate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_SHIMS = Path(__file__).with_name("shims")
_PACKAGES = Path(__file__).resolve().parents[3]
# Stood for by probe.sh; each is written down and not run.
_PROGRAMS = (
    "probe python python2 python3 pypy3 nvidia-smi rocm-smi sbatch "
    "python3.8 python3.9 python3.10 python3.11 python3.12 python3.13 python3.14"
).split()
# Stood for by starter.sh: they start what their arguments name.
_STARTERS = (
    "srun torchrun accelerate accelerate-launch deepspeed horovodrun mpirun mpiexec orterun "
    "apptainer singularity docker podman podman-hpc shifter conda mamba micromamba uv poetry "
    "pipenv pixi hatch rye nsys ncu hpcrun xvfb-run numactl unbuffer catchsegv"
).split()

# What reaches other machines, or other rights: written down, not run, and taken to succeed. git and
# rsync are run if they stay here.
REMOTE = (
    "curl wget git ssh scp sftp rsync rclone aws gsutil gcloud az azcopy s5cmd mc hf "
    "huggingface-cli wandb dvc mail sendmail mutt sudo su doas"
).split()


class Stage:
    """Made by a process of its own that also removes it; see guard.py.

    `path` holds `bin` (first on the job's PATH), `records` (a file for each program that was
    started), `ended` (one for each that ended by itself), `told` (one for each that got the
    signal), `notes` and `events` (what else happened), `log`, and the gate at which programs wait.
    """

    def __init__(self) -> None:
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is for the rehearsal, which then lets go of the guard.
            start_new_session=True,
            cwd="/",
        )
        assert self._guard.stdout is not None
        with self._guard.stdout as answer:
            said = os.fsdecode(answer.readline()).rstrip("\n")
        if not said.startswith("/"):
            raise UnavailableError(
                f"no folder for the rehearsal:{said}",
                fix="set TMPDIR to a folder where you may write and run programs",
            )
        self.path = Path(said)

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._guard.wait(deadlines.ALL_KILLED)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """With its folders, and with the gate, which is open at the end."""
        for name in (
            "bin",
            "shims",
            "records",
            "ended",
            "told",
            "notes",
            "events",
            "meetings",
            "log",
        ):
            (self.path / name).mkdir()
        self.gate = Gate(self.path / "gate")
        try:
            yield
        finally:
            self.gate.close()

    @property
    def bin(self) -> Path:
        return self.path / "bin"

    @property
    def recorder(self) -> Path:
        """What BASH_ENV names in the job."""
        return self.path / "recorder.bash"

    def fill(self, *, real: bool, signal: str = "") -> None:
        """Put the stand-ins there.

        real: the programs run. signal: what Slurm will send, and they are to tell of.
        """
        (self.path / "interpreter").symlink_to(sys.executable)
        (self.path / "package").symlink_to(_PACKAGES)
        (self.path / "shims" / "start.py").symlink_to(_SHIMS / "start.py")
        for name in ("probe.sh", "starter.sh", "hostname.sh"):
            copy = self.path / "shims" / name
            copy.write_bytes((_SHIMS / name).read_bytes())
            copy.chmod(0o700)
        self.recorder.write_bytes((_SHIMS / "recorder.bash").read_bytes())
        starters = ["srun"] if real else _STARTERS
        for name in starters:
            (self.bin / name).symlink_to(self.path / "shims" / "starter.sh")
        for name in _PROGRAMS:
            (self.bin / name).symlink_to(self.path / "shims" / "probe.sh")
        if real:
            (self.path / "real").touch()
        else:
            for name in REMOTE:
                (self.bin / name).symlink_to(self.path / "shims" / "probe.sh")
            (self.bin / "hostname").symlink_to(self.path / "shims" / "hostname.sh")
        if signal:
            (self.path / "signal").write_text(f"{signal}\n")
        own = os.environ.get("BASH_ENV")
        if own:
            (self.path / "own.bash").symlink_to(os.path.abspath(own))

    def prolog(self) -> str:
        """Lines of a task prolog: what brings the stand-ins into a step that kept nothing."""
        first = shlex.quote(str(self.bin))
        return (
            f"own={first}\n"
            'case ${PATH-} in\n  "$own":*) ;;\n'
            "  *) if grep -qz '^PATH=' /proc/$$/environ; then\n"
            '    echo "export PATH=$own:$PATH"; fi ;;\n'
            "esac\n"
            f'[ "${{BASH_ENV-}}" = {shlex.quote(str(self.recorder))} ] ||\n'
            f"  echo export BASH_ENV={shlex.quote(str(self.recorder))}\n"
        )

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        """What the job is submitted with."""
        path = os.pathsep.join([str(self.bin), base.get("PATH", os.defpath)])
        return {**base, "PATH": path, "BASH_ENV": str(self.recorder)}
