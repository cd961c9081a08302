"""Files that are written where others may write, too: no link of theirs is followed. No torch here.

In a folder that others may write to, a name that can be guessed may be there before, as a link to
a file of one's own. So what is new gets a name that can't be guessed, and must not exist; what
may exist is opened through links of one's own alone.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

_LINKS = 16
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def unguessable() -> str:
    """A part of a name that nobody else can choose before."""
    return secrets.token_hex(8)


def create(path: str | os.PathLike[str]) -> BinaryIO:
    """A new file, to be written. Raises FileExistsError, also for a link that leads nowhere."""
    return os.fdopen(os.open(path, _NEW, 0o666), "wb")


def append(path: str | os.PathLike[str], text: str) -> None:
    """Add `text` at the end of a file, which is made if there is none.

    Raises OSError, PermissionError for a link that another user has put there.
    """
    _put(path, text, os.O_APPEND)


def replace(path: str | os.PathLike[str], text: str) -> None:
    """Make `text` all that is in a file. Raises as `append`."""
    _put(path, text, os.O_TRUNC)


def _put(path: str | os.PathLike[str], text: str, flag: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flag
    handle = os.open(_behind_own_links(Path(path)), flags, 0o666)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


def _behind_own_links(path: Path) -> Path:
    """Where `path` leads, if each link on the way is root's or this user's."""
    for _ in range(_LINKS):
        try:
            link = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return path
        try:
            status = os.fstat(link)
            if not stat.S_ISLNK(status.st_mode):
                return path
            if status.st_uid not in {0, os.geteuid()}:
                raise PermissionError(f"{path} is a link of another user (uid {status.st_uid})")
            # Of the very link that was looked at.
            path = path.parent / os.readlink("", dir_fd=link)
        finally:
            os.close(link)
    raise OSError(f"{path}: too many links")


def in_others_hands(folder: Path) -> str:
    """Why other users can put something into `folder`, or have made it; "" if they can't."""
    try:
        status = folder.stat()
    except OSError:
        return ""
    if status.st_uid not in {0, os.geteuid()}:
        return f"{folder} belongs to another user (uid {status.st_uid})"
    if status.st_mode & stat.S_IWOTH:
        return f"every user may write to {folder}: chmod o-w takes that right"
    return ""
