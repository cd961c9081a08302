"""What can go wrong, and the exit status each kind ends with.

Raise the most specific class. `main.py` holds the only handler: it prints the
message (or the diagnostics) on stderr and exits with `exit_status`. Ctrl-C ends with
EXIT_INTERRUPTED (130, as a shell counts SIGINT).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, Diagnostic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.diagnostics import KeyPath, Place

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_UNAVAILABLE = 3
EXIT_BUG = 70
EXIT_INTERRUPTED = 130


class SlurmgenError(Exception):
    """Anything a user, a file or a cluster can cause. Never shown as a traceback.

    `fix` says what to do about it; it is printed on a line of its own.
    """

    exit_status = EXIT_USAGE

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


class UsageError(SlurmgenError):
    """The command line asks for something that makes no sense."""


class InvalidInput(SlurmgenError):
    """A job file, profile or template has errors; every one of them is a diagnostic."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(f"{len(diagnostics)} error(s)")
        self.diagnostics = tuple(diagnostics)


class FaultyJob(InvalidInput):
    """A valid job file that lint knows to fail; its diagnostics say where and why."""

    exit_status = EXIT_FINDINGS


class UnavailableError(SlurmgenError):
    """Slurm, a program or a file can't be reached, or refused."""

    exit_status = EXIT_UNAVAILABLE


class NotSubmitted(UnavailableError):
    """Slurm has no job of this submission: it may be submitted again."""


class JobRefused(NotSubmitted):
    """Slurm, or sbatch before it asked Slurm, did not take the job; `said` is their own words."""

    def __init__(self, message: str, *, fix: str, said: str) -> None:
        super().__init__(message, fix=fix)
        self.said = said


class PerhapsSubmitted(UnavailableError):
    """Whether Slurm has the job could not be found out; `fix` says how to look.

    Submitting again may start it twice. `slurmgen submit` of the same job looks first.
    """


class Refusal(ValueError):
    """A value that means nothing, or that Slurm would take wrongly, or that a cluster can't give.

    A `ValueError`, so that a Pydantic validator may raise it; `source.py` adds
    the position in the file.

    what: one clause naming the value, no full stop (``"90x" is not a time``).
    why: what would happen, or the grammar, with the Slurm version where it matters.
    fix: an instruction (``write "90m" or "1:30:00"``).
    key: what it is about, seen from whatever is read: a key of the file or the way to one, an
    item of a list; () is the whole.
    involved: every key that takes part, the first of `key` where only that does.
    """

    def __init__(
        self,
        what: str,
        *,
        why: str,
        fix: str,
        key: str | KeyPath = (),
        involved: tuple[str, ...] = (),
    ) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.key = key
        self.involved = involved or tuple(map(str, self.path[:1]))

    @property
    def path(self) -> KeyPath:
        """The way to `key`."""
        return (self.key,) if isinstance(self.key, str) else self.key

    def about(self, key: str | KeyPath, *involved: str) -> Refusal:
        """The same of a key of the file; involved: every key that takes part, if several do."""
        return Refusal(self.what, why=self.why, fix=self.fix, key=key, involved=involved)

    def at(self, place: Place) -> Diagnostic:
        """What is said of it once its place is known."""
        return Diagnostic(place, "invalid-value", "SG004", ERROR, self.what, self.why, self.fix)


class Refusals(ValueError):
    """Every Refusal that keeps a file from meaning something, or a job from becoming a plan."""

    def __init__(self, problems: list[Refusal]) -> None:
        super().__init__("; ".join(problem.what for problem in problems))
        self.problems = problems
