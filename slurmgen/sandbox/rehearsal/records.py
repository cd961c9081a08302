"""What the stand-ins wrote down, read back as it was."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_END = b".end"


class Program(NamedTuple):
    """A process that a program of the job was started as.

    what: `file`, `module`, `code` (of Python), `tool` (helps, and is no program of the job) or
    `other`. argv: with the name first, as the kernel had it. env: as the job made it, the
    rehearsal's own variables taken out. step: `batch` for the batch shell. order: when, in
    nanoseconds. ended: whether it ended by itself. launch: the launcher that started it,
    where one did.
    """

    name: str
    what: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    job: str
    restart: int
    step: str
    order: int
    ended: bool
    launch: str = ""

    @property
    def node(self) -> str:
        return self.env.get("SLURMD_NODENAME", "")

    @property
    def array_task(self) -> str | None:
        return self.env.get("SLURM_ARRAY_TASK_ID")


class Note(NamedTuple):
    """Something else that happened: its kind, where, and what there is to say of it.

    line: of the shell script that it happened in; 0 where that is not known.
    """

    kind: str
    job: str
    restart: int
    step: str
    node: str
    order: int
    content: Mapping[str, Any]
    line: int = 0
    script: str = ""


def read_programs(stage: Path, *, bash_env: str | None = None) -> list[Program]:
    """Every program started so far, in order.

    bash_env: what BASH_ENV was before the rehearsal took it.
    """
    ended = set(os.listdir(stage / "ended"))
    found = []
    with os.scandir(stage / "records") as entries:
        for entry in entries:
            with open(entry.path, "rb") as file:
                raw = file.read()
            if raw.endswith(_END):
                order = entry.stat().st_mtime_ns
                program = _program(raw, entry.name, str(stage / "bin"), bash_env)
                found.append(program._replace(order=order, ended=entry.name in ended))
    return sorted(found, key=lambda program: program.order)


def _program(raw: bytes, name: str, own_bin: str, bash_env: str | None) -> Program:
    texts = os.fsdecode(raw[: -len(_END)]).split("\0")
    kind, called, what, count, cwd = texts[:5]
    # The shell and the file in it come before the words of the call.
    end = 7 + int(count)
    argv = [called, *texts[7:end]]
    if called == "probe":
        argv = argv[1:]
    env = dict(text.partition("=")[::2] for text in texts[end:-1])
    path = env.get("PATH")
    if path is not None:
        env["PATH"] = ":".join(folder for folder in path.split(":") if folder != own_bin)
    env.pop("BASH_ENV", None)
    if bash_env is not None:
        env["BASH_ENV"] = bash_env
    launch = env.pop("SLURMGEN_REHEARSAL_LAUNCH", "")
    job, restart, step, _ = name.split(".")
    if kind == "tool":
        what = "tool"
    return Program(argv[0], what, tuple(argv), env, cwd, job, int(restart), step, 0, False, launch)


def read_notes(stage: Path) -> list[Note]:
    """Everything else that was written down so far, in order."""
    found = []
    for path in (stage / "notes").iterdir():
        if not path.name.startswith("."):
            content = json.loads(path.read_text())
            found.append(
                Note(
                    content["kind"],
                    content["job"],
                    int(content["restart"]),
                    content["step"],
                    content["node"],
                    int(path.name.partition("-")[0]),
                    content,
                )
            )
    for path in (stage / "events").iterdir():
        texts = path.read_text(errors="surrogateescape").split("\0")
        for at in range(0, len(texts) - 9, 9):
            kind, text, line, job, restart, step, node, when, script = texts[at : at + 9]
            order = int(float(when.replace(",", ".")) * 1e9)
            content = {"text": text}
            found.append(
                Note(kind, job, int(restart), step, node, order, content, int(line), script)
            )
    return sorted(found, key=lambda note: note.order)


def count(stage: Path) -> int:
    """How much was written down so far."""
    return sum(len(os.listdir(stage / name)) for name in ("records", "notes", "events", "ended"))
