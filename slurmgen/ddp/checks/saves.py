"""The check for a file that several ranks write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from slurmgen.ddp import log
from slurmgen.ddp.checks.patches import around

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurmgen.ddp.checks.exchange import Exchange

_PATHS = 64
# With what is on a block device, each machine's own; all others are shared by the nodes.
_LOCAL = {"tmpfs", "ramfs", "overlay", "zfs", "fuse.fuse-overlayfs"}
_BOOT = "/proc/sys/kernel/random/boot_id"


class Saves:
    """``torch.save`` to the same file on more than one rank.

    Mistake: every rank saves, instead of one.
    Why: they write over each other, and a job that is killed or reads meanwhile finds a mixture.
    Fix: ``if ddp.is_main():`` around it, or ``ddp.save``.

    Files of the same name on the local disks of several nodes are different files.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._known: set[str] = set()
        self._undo: list[Callable[[], None]] = []

    def watch(self) -> Callable[[], None]:
        """From here on; returns what ends it."""

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def save(obj: Any, f: Any, *args: Any, **options: Any) -> Any:
                try:
                    self._saved(f)
                except Exception:
                    self.end()
                return original(obj, f, *args, **options)

            return save

        # Under both its names, or what holds a reference to it couldn't be pickled.
        self._undo.append(around(torch, "save", make))
        save = torch.save
        self._undo.append(around(torch.serialization, "save", lambda _: save))
        return self.end

    def end(self) -> None:
        """Look no more."""
        for undo in self._undo:
            undo()
        self._undo.clear()

    def _saved(self, file: Any) -> None:
        name = file if isinstance(file, str | os.PathLike) else getattr(file, "name", None)
        if not isinstance(name, str | os.PathLike) or len(self._known) >= _PATHS:
            return
        path = Path(os.path.realpath(name))
        if path.exists() and not path.is_file():
            return
        key = identity(path)
        if key in self._known:
            return
        self._known.add(key)
        if self._exchange.count(f"save/{key}") == 2 and self._exchange.count("saves") == 1:
            log.warn(
                f"more than one rank writes {path}, over each other's: save on one, by"
                " if ddp.is_main(): or with ddp.save, which every rank calls"
            )
            self.end()


def identity(path: Path) -> str:
    """The same for two ranks that would write the same file, on any nodes."""
    folder = os.stat(path.parent)
    kind, source = _mount(path.parent)
    # IBM's shared one calls its source a device, too.
    if kind in _LOCAL or (source.startswith("/dev/") and kind != "gpfs"):
        # Of the kernel, not the host name: containers on one machine have several.
        return f"{Path(_BOOT).read_text().strip()} {folder.st_dev} {folder.st_ino} {path.name}"
    # A shared file system has another device number on each node.
    return f"{kind} {source} {folder.st_ino} {path.name}"


def _mount(folder: Path) -> tuple[str, str]:
    """The type and the source of the file system that `folder` is on."""
    best, found = "", ("", "")
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        # proc(5): ... mount point (5th) ... - type source options
        left, _, right = line.partition(" - ")
        # A space in a name is written as \040.
        point = left.split()[4].replace("\\040", " ")
        inside = point == "/" or f"{folder}/".startswith(f"{point}/")
        if inside and len(point) >= len(best):
            kind, source = right.split()[:2]
            best, found = point, (kind, source)
    return found
