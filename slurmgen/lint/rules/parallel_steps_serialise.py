"""Steps that are started side by side run one after the other.

## What it does

Finds several srun that the script starts in the background, in a loop, by GNU parallel or xargs,
on the same nodes, where each takes more than its share: without `--exact` all CPUs, without
`--mem` all memory of the job, without `--gres` all its GPUs. Steps with `--overlap`, on nodes of
their own or in other components of a heterogeneous job are passed over.

## Why is this bad

From Slurm 20.11 on a step has what it takes for itself. A plain srun takes everything that the
job has on its nodes, so the next one waits (after two minutes it says "Requested nodes are busy").
On 22.05 two steps of 3 s took 6 s, with `--exact` alone still 6 s, with `--exact --mem=...` 3 s.

Where the job asks for GPUs by `--gpus-per-node`, srun of 26.05 refuses `--gres=gpu:1`: ask in the
same way for both.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --gres=gpu:2
#SBATCH --mem=64G
#SBATCH --time=2:00:00
for seed in 0 1; do
    srun --ntasks=1 --gres=gpu:1 python train.py --seed "$seed" &
done
wait
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --gres=gpu:2
#SBATCH --mem=64G
#SBATCH --time=2:00:00
for seed in 0 1; do
    srun --exact --ntasks=1 --gres=gpu:1 --mem=32G python train.py --seed "$seed" &
done
wait
```

## References

- srun(1), --exact, --mem and --overlap
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts import launching
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.words import TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.shell.commands import Command
    from slurmgen.reading.shell.launch import Launch

NAME = "parallel-steps-serialise"
CODE = "SG314"
SEVERITY = WARNING
SINCE = "20.11"

_MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
_GPUS = ("gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "tres-per-task")
_PLACED = ("nodelist", "relative", "exclude", "nodefile", "multi-prog")
_WHY = (
    "A step has what it takes for itself; without the missing options it takes all that the job "
    "has of it, and the next step waits until it ends"
)


class _Running(NamedTuple):
    """A step in the background.

    repeated: it is started again and again. place: of what is put into the background; steps
    with the same one run one after the other.
    """

    launch: Launch
    repeated: bool
    place: int


def check(job: Job) -> Iterator[Finding]:
    if job.is_submitter:
        return
    for group in _groups(job):
        missing = _missing(job, group)
        if missing:
            step = group[0].launch.step
            assert step is not None
            yield Finding(
                job.place(step.start, step.end),
                f"steps side by side without {' and '.join(missing)}",
                _WHY,
                f"give each srun {' '.join(_VALUES[option] for option in missing)}",
            )
            return
    yield from _by_parallel(job)


_VALUES = {"--exact": "--exact", "--mem": "--mem=...", "--gres": "--gres=gpu:N"}


def _groups(job: Job) -> Iterator[list[_Running]]:
    """The steps that are meant to run at the same time, those of one component of the job."""
    running: list[_Running] = []
    called: set[str] = set()
    commands = job.script.shell.commands
    steps = {id(launch.command): launch for launch in _steps(job)}
    for at, command in enumerate(commands):
        if command.name == "wait" and not command.loop and not command.background:
            yield from _by_component(running)
            running = []
        own_step = steps.get(id(command))
        started = [own_step] if own_step is not None else []
        if command.name in job.script.shell.functions:
            # What a function starts stands behind its first call.
            if command.name in called:
                started = [s for s in steps.values() if s.command.function == command.name]
            called.add(command.name)
        for launch in started:
            is_repeated = command.loop and not _is_awaited(command, commands[at + 1 :])
            place = command.context.job if launch is own_step else command.start
            if command.background or launch.command.background:
                running.append(_Running(launch, is_repeated, place))
            elif running:
                # The script waits for this one, while the others run.
                yield from _by_component([*running, _Running(launch, False, command.start)])
    yield from _by_component(running)


def _steps(job: Job) -> Iterator[Launch]:
    """A launch for each srun that is itself in no step."""
    for launch in job.steps:
        step = launch.step
        if step is not None and step.outer is None and launch.where == TASK:
            if not launch.command.context.handler and launching.is_called(job, launch):
                yield launch


def _is_awaited(command: Command, behind: tuple[Command, ...]) -> bool:
    """Whether the script waits for a command right behind it, each time."""
    other = next((c for c in behind if c.context.job != command.context.job), None)
    if other is None or not other.loop or other.name != "wait":
        return False
    return other.words[-1].text != "-n"


def _by_component(running: list[_Running]) -> Iterator[list[_Running]]:
    components: dict[str, dict[int, list[_Running]]] = {}
    for item in running:
        step = item.launch.step
        assert step is not None
        environment = item.launch.command.environment
        if step.opaque or step.option("overlap") is not None or "SLURM_OVERLAP" in environment:
            continue
        group = step.option("het-group")
        name = group.text if group is not None else "0"
        # What stands in one `( … ) &` runs one after the other.
        together = components.setdefault(name, {})
        together.setdefault(item.place, []).append(item)
    for groups in components.values():
        first = [items[0] for items in groups.values()]
        if len(first) > 1 or any(item.repeated for item in first):
            yield first


def _missing(job: Job, group: list[_Running]) -> list[str]:
    """The options without which steps of a group take everything."""
    request = job.request_of(group[0].launch)
    total = request.total_nodes
    if total is not None and total > 1 and any(item.repeated for item in group):
        return []
    nodes = 0
    for item in group:
        step = item.launch.step
        assert step is not None
        if step.option(*_PLACED) is not None and total != 1:
            return []
        nodes += job.extent(item.launch).nodes or 0
    # Where nobody says how many nodes, the tasks are mostly put on one.
    if total is not None and total > 1 and nodes <= total:
        return []
    lacking = [_lacking(job, item.launch) for item in group]
    return [option for option in _VALUES if any(option in options for options in lacking)]


def _lacking(job: Job, launch: Launch) -> list[str]:
    step, request = launch.step, job.request_of(launch)
    assert step is not None
    found = []
    given = step.option("cpus-per-task")
    is_exact = step.option("exact", "exclusive") is not None
    is_exact = is_exact or "SLURM_EXACT" in launch.command.environment
    if given is not None or request.cpus_per_task is not None:
        # From 23.11 on, and until then nobody knows which version it is.
        implied = job.slurm is not None and job.slurm >= "23.11"
        unknown = job.slurm is None and given is not None and step.option(*_MEMORY) is not None
        is_exact = is_exact or implied or unknown
    if not is_exact:
        found.append("--exact")
    gpus = request.node_gpus
    has_gpus = gpus is None or gpus > 0
    if _takes_memory(job, launch, is_likely=has_gpus or not is_exact):
        found.append("--mem")
    if has_gpus and not request.gives("gpus-per-task"):
        asked = job.extent(launch).gpus_per_node
        if step.option(*_GPUS) is None or (gpus is not None and (asked or 0) * 2 > gpus):
            found.append("--gres")
    return found


def _takes_memory(job: Job, launch: Launch, *, is_likely: bool) -> bool:
    """Whether a step takes the whole memory of the job.

    is_likely: what to think where neither says a word about memory: it is by the CPU on
    clusters with DefMemPerCPU, and whole nodes' on others.
    """
    step, request = launch.step, job.request_of(launch)
    assert step is not None
    if step.option(*_MEMORY) is not None or request.gives("mem-per-cpu", "mem-per-gpu"):
        return False
    if job.profile is not None and job.profile.memory == "omit":
        return False
    return request.gives("mem") or is_likely


def _by_parallel(job: Job) -> Iterator[Finding]:
    """GNU parallel and xargs -P, whose command is text."""
    if (job.request.total_nodes or 1) > 1:
        return
    for command in job.commands("parallel", "xargs"):
        words = " ".join(word.text for word in command.words).split()
        if "srun" not in words or (command.name == "xargs" and not _is_parallel(words)):
            continue
        options = words[words.index("srun") :]
        if not any(o.startswith(("--exact", "--exclusive", "--overlap")) for o in options):
            yield Finding(
                job.place_of(command),
                f"{command.name} starts steps side by side without --exact",
                _WHY,
                "give its srun --exact, --mem=... and --gres=gpu:N",
            )
            return


def _is_parallel(words: list[str]) -> bool:
    return any(
        word.startswith(("-P", "--max-procs")) and word not in ("-P1", "--max-procs=1")
        for word in words
    )
