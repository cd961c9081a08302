"""Environment variables that a job gives its programs, wherever it sets them.

In the script (`export`, a prefix, `env`, inside `bash -c '…'`), with --export of sbatch or
srun, with a container's own options, and in the Python programs themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.lint.facts.tools import is_tool
from slurmgen.lint.facts.wording import find, split
from slurmgen.lint.job import once
from slurmgen.reading.budget import spend
from slurmgen.reading.shell.words import BATCH, TASK, literal_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.diagnostics import Place
    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import EnvWrite, Value
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Word

_CONTAINER_PREFIXES = ("APPTAINERENV_", "SINGULARITYENV_")


class Setting(NamedTuple):
    """One place that gives a variable its value, and the launches whose programs see it.

    word: the value where the script gives it, value: where a Python program does; the other
    is None. conditional: a branch, loop or function may pass it by. write: of a program.
    """

    name: str
    word: Word | None
    value: Value | None
    place: Place
    launches: tuple[Launch, ...]
    conditional: bool = False
    run: Run | None = None
    write: EnvWrite | None = None

    @property
    def literal(self) -> str | None:
        """The value where it is plain text."""
        if self.word is not None:
            return self.word.literal
        literal = self.value.literal if self.value is not None and self.value.is_constant else None
        return None if literal is None or isinstance(literal, bool) else str(literal)


def settings(job: Job) -> tuple[Setting, ...]:
    """The environment variables that the job gives its programs."""
    found = _settings(job)
    spend(len(found))
    return found


@once
def _settings(job: Job) -> tuple[Setting, ...]:
    found: dict[tuple[str, int], Setting] = {}
    launches: dict[tuple[str, int], list[Launch]] = {}
    for launch in job.launches:
        if launch.where not in (BATCH, TASK) or is_tool(launch):
            continue
        for setting in (*_of_environment(job, launch), *_of_options(job, launch)):
            assert setting.word is not None
            key = setting.name, setting.word.start
            found[key] = setting
            launches.setdefault(key, []).append(launch)
    given = (s._replace(launches=tuple(launches[key])) for key, s in found.items())
    return (*given, *_of_programs(job))


def _of_environment(job: Job, launch: Launch) -> Iterator[Setting]:
    for name, assignment in launch.environment.items():
        if assignment.words is not None:
            continue
        prefix = next((p for p in _CONTAINER_PREFIXES if name.startswith(p)), "")
        bare = name.removeprefix(prefix) if launch.container is not None else name
        yield Setting(
            bare, assignment.value, None, job.place_of(assignment), (), assignment.conditional
        )


def _of_options(job: Job, launch: Launch) -> Iterator[Setting]:
    """`NAME=value` in lists that options of sbatch, srun or a container take."""
    lists = []
    step, container = launch.step, launch.container
    if step is not None:
        lists.append(step.option("export"))
    if container is not None:
        lists += [container.option("env"), container.option("e")]
    directive = job.request.directive("export")
    if directive is not None and directive.value is not None and directive.value_start is not None:
        lists.append(literal_word(directive.value, directive.value_start, directive.value_end or 0))
    for listed in lists:
        for item in split(listed, ",") if listed is not None else ():
            at = find(item, "=")
            name = item.text[:at] if at >= 0 else ""
            if name.isidentifier() and name not in launch.environment:
                value = item.after(f"{name}=")
                yield Setting(name, value, None, job.place(item.start, item.end), ())


def _of_programs(job: Job) -> Iterator[Setting]:
    from slurmgen.lint.facts.python import runs
    from slurmgen.reading.programs import truth

    for run in runs(job):
        for write in run.program.env_writes:
            if any(truth(c.test, run.present) not in (None, c.holds) for c in write.conditions):
                continue
            if write.how == "setdefault" and write.name in run.launch.environment:
                continue
            value = run.settled(write.value)
            yield Setting(write.name, None, value, write.place, (run.launch,), False, run, write)
