"""What the system refused (a file, a folder, a limit), in words with a fix.

Most refusals are met where they happen, by whoever knows what was being done. This is for
the others: whatever the system says no to is no bug of slurmgen.
"""

from __future__ import annotations

import errno
import os

from slurmgen.errors import SlurmgenError, UnavailableError
from slurmgen.jobfile.project import working_folder

_FIXES = {
    errno.EACCES: "check its permissions, and those of the folders above it",
    errno.EPERM: "check its permissions, and those of the folders above it",
    errno.EROFS: "work in a folder that is not mounted read-only",
    errno.ENOSPC: "make room there, or work in another folder",
    errno.EDQUOT: "make room in the quota, or work in another folder",
    errno.EFBIG: "raise the limit on the size of files: ulimit -f unlimited",
    errno.EMFILE: "raise the limit on open files: ulimit -n 1024",
    errno.ENFILE: "close other programs: the machine has too many files open",
    errno.EAGAIN: "end other programs, or raise the limit on processes (ulimit -u)",
    errno.ENOMEM: "end other programs, or raise the limit on memory (ulimit -v)",
    errno.ELOOP: "check the links there: they go round in a circle",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.ESTALE: "mount the file system again, or cd to the folder once more",
}


def explain(error: OSError | MemoryError) -> SlurmgenError:
    """The error that says what could not be used, why, and what helps."""
    if isinstance(error, MemoryError):
        return UnavailableError("there is no memory left", fix=_FIXES[errno.ENOMEM])
    try:
        working_folder()
    except SlurmgenError as problem:
        return problem
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        # tempfile has the folders that it tried in the text.
        fix = (
            "set TMPDIR to a folder that you may write to; see also ulimit -f"
            if "temporary" in reason
            else ""
        )
        return UnavailableError(
            f"the system refused: {reason}", fix=_FIXES.get(error.errno or 0, "") or fix or _USUAL
        )
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    fix = _FIXES.get(error.errno or 0, _USUAL)
    return UnavailableError(f"cannot use {name or error.filename}: {reason}", fix=fix)


_USUAL = "check the folders that it needs: the working folder, HOME, TMPDIR"
