"""Patterns of log files (sbatch(1), FILENAME PATTERN)."""

from __future__ import annotations

import re

from slurmgen.errors import Refusal
from slurmgen.slurm.quoting import check_directive

# %b, %r and %S are newer than 22.05, which writes them out literally.
_TOKENS = "AajJnNstux%"
_NEWER = {"b": "24.11", "r": "25.11", "S": "25.11"}
_MAX_BYTES = 4095


def check_pattern(text: str) -> str:
    """The pattern as it is; raises Refusal for what would not become the file meant."""
    check_directive(text)
    if not text:
        raise Refusal("the file name is empty", why="it names nothing", fix="remove the key")
    if text.endswith("/"):
        raise Refusal(
            f'"{text}" is a folder',
            why="the job would fail when Slurm opens it as a file",
            fix=f"write {text}%j.out",
        )
    if "\\" in text:
        raise Refusal(
            f'"{text}" holds a backslash',
            why="a backslash anywhere turns off all % patterns",
            fix="remove it",
        )
    if "$" in text or text.startswith("~") or "`" in text:
        raise Refusal(
            f'"{text}" holds a shell expansion',
            why="sbatch expands nothing in it: the file would be called just that",
            fix="write %j for the job id, %x for its name, %A_%a in an array, %u for the user",
        )
    if len(text.encode()) > _MAX_BYTES:
        raise Refusal("the file name is too long", why="Linux takes 4095 bytes", fix="shorten it")
    for digits, token in re.findall(r"%([0-9]*)(.?)", text):
        if token in _NEWER:
            raise Refusal(
                f'"%{token}" in "{text}" is new in Slurm {_NEWER[token]}',
                why="older versions leave it as it stands",
                fix="write %j or %A_%a",
            )
        if token not in _TOKENS or not token or int(digits[:9] or 0) > 10:
            raise Refusal(
                f'"%{digits}{token}" in "{text}" is no pattern',
                why=f"patterns are %{', %'.join(_TOKENS)}, with up to 10 digits of padding",
                fix="write %j, or %% for a percent sign",
            )
    return text


def log_directory(pattern: str, *, job_name: str, user: str) -> tuple[str | None, str | None]:
    """The folder that must exist before the job starts, and the one nobody can make before.

    The first is None where it is the current one; the second where the folder is known:
    only `%x`, `%u` and `%%` are, before the job has an id. Slurm makes folders by itself
    from 23.02 on; older ones end the job at its start, without a log.
    """
    known = {"%x": job_name, "%u": user, "%%": "%"}
    path = re.sub(r"%\d*[xu%]", lambda found: known["%" + found.group()[-1]], pattern)
    folder, slash, _ = path.rpartition("/")
    if not slash:
        return None, None
    unknown = re.search(r"%\d*[AajJnNst]", pattern.rpartition("/")[0])
    if unknown is None:
        return folder or "/", None
    return folder.split(unknown.group(), 1)[0].rpartition("/")[0] or None, folder
