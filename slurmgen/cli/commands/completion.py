"""slurmgen completion: what makes a shell complete commands, options and values."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen import resources
from slurmgen.cli import report
from slurmgen.cli.completion import offer
from slurmgen.errors import EXIT_OK, UnavailableError, UsageError
from slurmgen.files import write_atomically
from slurmgen.jobfile.project import home_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHELLS = ("bash", "zsh", "fish")


def complete(words: Sequence[str]) -> int:
    """Print what may stand in place of the last of the words behind `slurmgen`."""
    report.out(offer(words).text())
    return EXIT_OK


def run(shell: str | None, *, install: bool) -> int:
    """Print a shell's script, or put it where a new shell reads it."""
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        raise UsageError(
            f'there is no completion for "{name[:60]}"' if name else "$SHELL names no shell",
            fix=f"name one that there is: slurmgen completion {'|'.join(_SHELLS)}",
        )
    script = (resources.shells_dir() / f"slurmgen.{name}").read_text(encoding="utf-8")
    if install:
        _install(name, script)
    else:
        report.out(script)
    return EXIT_OK


def _install(shell: str, script: str) -> None:
    data, config = _folder("XDG_DATA_HOME", ".local/share"), _folder("XDG_CONFIG_HOME", ".config")
    if shell == "fish":
        where, reader = config / "fish" / "completions" / "slurmgen.fish", None
    elif shell == "bash":
        where = data / "bash-completion" / "completions" / "slurmgen"
        reader = home_folder() / ".bashrc"
    else:
        where = data / "slurmgen" / "slurmgen.zsh"
        reader = Path(os.environ.get("ZDOTDIR") or home_folder()) / ".zshrc"
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnavailableError(
            f"cannot make {where.parent}: {error.strerror}",
            fix=f"keep the script elsewhere: slurmgen completion {shell} > FILE",
        ) from error
    write_atomically(where, script)
    report.note(f"slurmgen: wrote {where}")
    if reader is not None and _made_to_read(reader, f"source {shlex.quote(str(where))}"):
        report.note(f"slurmgen: added a line to {reader} that reads it")
    report.note(f"slurmgen: a new {shell} completes slurmgen")


def _folder(variable: str, usual: str) -> Path:
    return Path(os.environ.get(variable) or home_folder() / usual)


def _made_to_read(start_file: Path, line: str) -> bool:
    """Whether the line had to be added to what a shell reads when it starts."""
    try:
        text = start_file.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise UnavailableError(
            f"cannot read {start_file}: {error.strerror}", fix=f"add this line yourself: {line}"
        ) from error
    if line in text.splitlines():
        return False
    between = "" if not text or text.endswith("\n") else "\n"
    write_atomically(start_file, f"{text}{between}{line}\n")
    return True
