"""What a job file's own keys say of a script's code, and the entries for it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.importer.yaml_text import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.importer.container import Container
    from slurmgen.launchers import Launcher


class Variable(NamedTuple):
    """An entry of `env`, with the comments over it."""

    name: str
    value: str
    above: tuple[str, ...] = ()


class Parts(NamedTuple):
    """A script's code as a job file says it.

    words: the command, where it is a list and `command` is empty.
    commands: of `setup`. above: comments, by the key they stand over. dropped: line and
    text of what the launcher does by itself.
    """

    launcher: Launcher
    command: str
    words: tuple[str, ...] = ()
    rdzv: str = "static"
    nproc: int | None = None
    purge: bool = False
    use: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    venv: str = ""
    conda: str = ""
    container: Container | None = None
    env: tuple[Variable, ...] = ()
    commands: str = ""
    above: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    dropped: tuple[tuple[int, str], ...] = ()


def entries(parts: Parts) -> list[Entry]:
    """The entries, of the top level, in any order."""
    above = parts.above
    found = [Entry("launcher", parts.launcher.name, above.get("launcher", ()))]
    if parts.rdzv != "static":
        found.append(Entry("rdzv", parts.rdzv))
    if parts.nproc is not None:
        found.append(Entry("nproc_per_node", str(parts.nproc), clear=True))
    setup = _setup(parts)
    if setup:
        found.append(Entry("setup", setup))
    if parts.env:
        variables = [Entry(name, value, over) for name, value, over in parts.env]
        found.append(Entry("env", variables))
    found.append(Entry("command", parts.words or parts.command, above.get("command", ())))
    return found


def _setup(parts: Parts) -> list[Entry]:
    above = parts.above
    found: list[Entry] = []
    if parts.purge or parts.use:
        inner = [Entry("purge", "true", clear=True)] if parts.purge else []
        inner += [Entry("use", parts.use)] if parts.use else []
        inner += [Entry("load", parts.load)] if parts.load else []
        found.append(Entry("modules", inner, above.get("modules", ())))
    elif parts.load:
        found.append(Entry("modules", parts.load, above.get("modules", ())))
    for key in ("venv", "conda"):
        value = getattr(parts, key)
        if value:
            found.append(Entry(key, value, above.get(key, ())))
    if parts.container is not None:
        found.append(_container(parts.container, above.get("container", ())))
    if parts.commands:
        found.append(Entry("commands", parts.commands, above.get("commands", ())))
    return found


def _container(container: Container, above: tuple[str, ...]) -> Entry:
    image, runtime, mounts, gpu, workdir, _ = container
    inner = [
        Entry(key, value)
        for key, value in (
            ("image", image), ("runtime", runtime), ("mounts", mounts), ("gpu", gpu),
            ("workdir", workdir),
        )
        if value
    ]  # fmt: skip
    return Entry("container", image if len(inner) == 1 else inner, above)
