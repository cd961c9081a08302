"""A rendered script against its plan: a project's template may add to it, not change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, Diagnostic, Place
from slurmgen.errors import InvalidInput
from slurmgen.jobfile.keys import MEMORY, OPTIONS
from slurmgen.slurm import directives
from slurmgen.slurm.options import catalog

if TYPE_CHECKING:
    from slurmgen.script.plan import JobPlan

_DECIDED = catalog.decided_by_the_plan() | {OPTIONS[key] for key in MEMORY}


def check_script(text: str, plan: JobPlan) -> None:
    """A project's template must not change what the plan decided, nor forget to start it.

    It may add directives of other kinds. Raises InvalidInput.
    """
    block = directives.read(text)
    # A script of the job's own may hold directives too, which come later and win, and faults.
    own = {d.option for d in directives.read(plan.script or "").directives}
    unclosed = next((p for p in block.problems if p.kind == "unclosed-quote"), None)
    if unclosed is not None and plan.script is None:
        what = f"line {unclosed.line} of the rendered script: a quote is not closed"
        raise InvalidInput([_problem(plan, what, "sbatch stops with a fatal error")])
    written = {d.option: d for d in block.directives}
    planned = {d.option: d.value for d in plan.directives if d.option not in own}
    problems = []
    why = "the ranks that the script starts would not fit the job"
    for option, value in planned.items():
        shown = f"--{option}" + ("" if value is None else f"={value}")
        if option not in written:
            what = f"the rendered script has no {shown} before its first command"
            problems.append(_problem(plan, what, why))
        elif written[option].value != value:
            found = written[option]
            what = f"line {found.line} of the rendered script says {found.value}, not {shown}"
            problems.append(_problem(plan, what, why))
    for option in sorted(_DECIDED & set(written) - set(planned) - own):
        what = f"line {written[option].line} of the rendered script adds --{option}"
        problems.append(_problem(plan, what, why))
    if plan.script is not None:
        if plan.script.partition("\n")[2].strip() not in text:
            what = "the rendered script does not hold the job's own script"
            problems.append(_problem(plan, what, "the job would start something else"))
    elif not any(line.lstrip().startswith("srun ") for line in text.split("\n")):
        what = "the rendered script has no srun line"
        problems.append(_problem(plan, what, "the job would start nothing"))
    if plan.requeue is not None and "scontrol requeue" not in text:
        what = "the rendered script requeues nothing"
        problems.append(_problem(plan, what, "the job would save, end and not come back"))
    if problems:
        raise InvalidInput(problems)


def _problem(plan: JobPlan, what: str, why: str) -> Diagnostic:
    return Diagnostic(
        Place(1, 1, path=f"{plan.template}.sbatch.j2"),
        "template-changes-plan",
        "SG011",
        ERROR,
        what,
        why,
        "put the value into the job file, and keep {{ super() }} in the blocks directives and "
        "launch",
    )
