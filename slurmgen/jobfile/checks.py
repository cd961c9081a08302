"""What several keys of a job file mean together.

Whether a number of tasks fits the launcher is the launcher's business
(`launchers/`); what one value means by itself is its field's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen import launchers
from slurmgen.errors import Refusal, Refusals
from slurmgen.jobfile.keys import KEYS, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.jobfile.model import JobKeys
    from slurmgen.launchers import Launcher


def check_together(spec: JobKeys) -> None:
    """Raises Refusals with every conflict between the keys of `spec`."""
    checks = _CHECKS if spec.script is None else (_script,)
    problems = [problem for check in checks for problem in check(spec)]
    if problems:
        raise Refusals(problems)


def _conflict(
    key: str | tuple[str | int, ...], involved: tuple[str, ...], what: str, why: str, fix: str
) -> Refusal:
    return Refusal(what, why=why, fix=fix, key=key, involved=involved)


def _script(spec: JobKeys) -> Iterator[Refusal]:
    """A script of the user's own: what its directives say is lint's to judge, as with any."""
    for key, known in KEYS.items():
        # What a script does by itself.
        if not known.beside_script and key in spec.model_fields_set:
            yield _conflict(
                key,
                ("script", key),
                f"{key} and script are both given",
                "a script is kept as it is: nothing is rendered into it but the directives",
                f"move what {key} says into the script, or write command in place of script",
            )
    if spec.requeue is not None and not isinstance(spec.requeue, bool):
        yield _conflict(
            "requeue",
            ("script", "requeue"),
            "requeue by the script, and a script of the job's own",
            "the lines that pass the signal on and requeue are rendered, and a script is kept as "
            "it is",
            "write requeue: true, or a command in place of script",
        )


def _program(spec: JobKeys) -> Iterator[Refusal]:
    # A script that is wrong itself is a program all the same.
    involved = ("command", "ddp", "args", "script")
    if spec.command is None and spec.ddp is None:
        yield _conflict(
            "command",
            involved,
            "the job has no program",
            "there would be nothing to start",
            "add command: python train.py, or ddp: train.py for the bundled entrypoint",
        )
    if spec.command is not None and spec.ddp is not None:
        yield _conflict(
            "ddp",
            involved,
            "command and ddp are both given",
            "a job starts one program",
            "keep one",
        )
    if spec.args and spec.ddp is None:
        yield _conflict(
            "args",
            involved,
            "args without ddp",
            "args are for the bundled entrypoint",
            "put them into command",
        )


def _resources(spec: JobKeys) -> Iterator[Refusal]:
    given = [key for key in MEMORY if getattr(spec, key)]
    if len(given) > 1:
        yield _conflict(
            given[1],
            tuple(given),
            f"{' and '.join(given)} are both given",
            "Slurm: --mem, --mem-per-cpu and --mem-per-gpu are mutually exclusive",
            "keep one",
        )
    if spec.cpus_per_task is not None and spec.cpus_per_gpu is not None:
        yield _conflict(
            "cpus_per_gpu",
            ("cpus_per_task", "cpus_per_gpu"),
            "cpus_per_task and cpus_per_gpu are both given",
            "they say the same thing twice, and Slurm refuses both from 22.05 on",
            "keep one",
        )
    for key, instead in (("cpus_per_gpu", "cpus_per_task"), ("mem_per_gpu", "mem_per_cpu")):
        if getattr(spec, key) is not None and spec.gpus_per_node is None:
            yield _conflict(
                key,
                (key, "gpus_per_node"),
                f"{key} without gpus_per_node",
                "the job has no GPU to count by",
                f"add gpus_per_node, or use {instead}",
            )
    if spec.rdzv not in _launcher(spec).rendezvous:
        able = tuple(one for one in launchers.every() if spec.rdzv in one.rendezvous)
        yield _conflict(
            "rdzv",
            ("rdzv", "launcher"),
            f"rdzv with launcher {spec.launcher}",
            f"rdzv is {able[0].name}'s",
            f"remove rdzv, or use launcher: {launchers.named(able)}",
        )


def _launcher(spec: JobKeys) -> Launcher:
    return launchers.find(spec.launcher)


def _shape(spec: JobKeys) -> Iterator[Refusal]:

    gpus = 0 if spec.gpus_per_node is None else spec.gpus_per_node.number
    try:
        _launcher(spec).layout(spec, gpus)
    except Refusal as problem:
        yield problem.about(problem.key, str(problem.key), "launcher", "nodes", "gpus_per_node")


def _python(spec: JobKeys) -> Iterator[Refusal]:
    keys = ("venv", "conda", "uv", "container")
    chosen = [key for key in keys if getattr(spec.setup, key)]
    if len(chosen) > 1:
        yield _conflict(
            ("setup", chosen[1]),
            ("setup",),
            f"{' and '.join(chosen)} are both given",
            "the Python of the last one would hide the others",
            f"keep one, say {chosen[0]}",
        )


def _until_deadline(spec: JobKeys) -> int | None:
    """Seconds, where the deadline counts from now."""
    if spec.deadline is None:
        return None
    from slurmgen.slurm.grammars.begin import offset_seconds

    return offset_seconds(spec.deadline)


def _times(spec: JobKeys) -> Iterator[Refusal]:
    most = spec.time.seconds if spec.time is not None else None
    least = spec.time_min.seconds if spec.time_min is not None else most
    left = _until_deadline(spec)
    if left is not None and least is not None and least > left:
        yield _conflict(
            "deadline",
            ("deadline", "time", "time_min"),
            f"deadline {spec.deadline} is sooner than the job is long",
            "Slurm up to 22.05 never starts it, newer ones refuse it",
            "give it a later deadline, or a shorter time (or time_min)",
        )
    if spec.time_min is not None and (least is None or (most is not None and least > most)):
        yield _conflict(
            "time_min",
            ("time", "time_min"),
            f"time_min {spec.time_min} is longer than {spec.time or 'any time'}",
            "Slurm: Invalid time-min specification",
            "write a time_min below time",
        )


def _segments(spec: JobKeys) -> Iterator[Refusal]:
    segment = spec.sbatch.get("segment")
    if segment is not None and spec.nodes % int(segment):
        yield _conflict(
            ("sbatch", "segment"),
            ("sbatch", "nodes"),
            f"segments of {segment} nodes do not add up to {spec.nodes}",
            "Slurm: the number of nodes must be a multiple of --segment",
            "write a segment that divides nodes",
        )


def _array_tokens(spec: JobKeys) -> Iterator[Refusal]:
    for key in ("output", "error", "input"):
        pattern = getattr(spec, key)
        if pattern is None or spec.array is not None:
            continue
        for token in "aA":
            if re.search(f"%[0-9]*{token}", pattern.replace("%%", "")):
                yield _conflict(
                    key,
                    (key, "array"),
                    f'{key} holds "%{token}", and the job is no array',
                    "outside an array %a becomes 4294967294 and %A the job id",
                    "write %j, or add array:",
                )


def _hosts(spec: JobKeys) -> Iterator[Refusal]:
    if spec.nodelist is None:
        return
    from slurmgen.slurm.grammars.nodes import expand_hostlist

    hosts = expand_hostlist(spec.nodelist)
    if len(set(hosts)) > spec.nodes:
        yield _conflict(
            "nodelist",
            ("nodelist", "nodes"),
            f"nodelist names {len(set(hosts))} hosts for nodes: {spec.nodes}",
            "Slurm up to 22.05 refuses it, newer ones use more nodes than the ranks need",
            f"write nodes: {len(set(hosts))}, or name fewer hosts",
        )
    both = set(hosts) & set(expand_hostlist(spec.exclude)) if spec.exclude else set()
    if both:
        yield _conflict(
            "exclude",
            ("nodelist", "exclude"),
            f"{', '.join(sorted(both))} is in both nodelist and exclude",
            "Slurm: Invalid node name specified",
            "remove it from one of them",
        )


def _environment(spec: JobKeys) -> Iterator[Refusal]:
    if not spec.env:
        return
    from slurmgen.jobfile.reserved import refused_variable

    for name in spec.env:
        refusal = refused_variable(name)
        if refusal is not None:
            yield refusal.about(("env", name))


def _exported(spec: JobKeys) -> Iterator[Refusal]:
    """What a directive sets, Bash reads when it starts: the same names are refused."""
    if spec.export is None or "=" not in spec.export:
        return
    from slurmgen.jobfile.reserved import refused_variable
    from slurmgen.slurm.grammars.export import given_values

    for name in given_values(spec.export):
        refusal = refused_variable(name)
        if refusal is not None:
            yield refusal.about("export")


# bash(1), torchrun and a forking parent end by these; the program's own handler is not
# theirs. What ends or stops everything anyway needs no handler.
_ALWAYS_DEADLY = ("KILL", "TERM", "STOP", "CONT")


def _signal(spec: JobKeys) -> Iterator[Refusal]:
    if spec.signal is None:
        return
    from slurmgen.slurm.grammars.signal import flags_and_name

    flags, name = flags_and_name(spec.signal)
    program = spec.signal.rpartition(":")[2]
    if "B" in flags and not any("trap" in text for text in spec.setup.commands):
        yield _conflict(
            "signal",
            ("signal", "setup"),
            f"signal {spec.signal} goes to the batch shell alone",
            "the batch shell would die of it, and the job with it, before the program hears of it",
            f"write signal: {program}, which goes to the program, or set a trap in setup.commands",
        )
    why = _launcher(spec).dies_of_signals
    if why and "B" not in flags and name not in _ALWAYS_DEADLY:
        yield _conflict(
            "signal",
            ("signal", "launcher"),
            f"signal {spec.signal} with launcher {spec.launcher}",
            why,
            f"use launcher: {launchers.DEFAULT}, where each rank gets it",
        )


def _requeue(spec: JobKeys) -> Iterator[Refusal]:
    if spec.requeue is None or isinstance(spec.requeue, bool):
        return
    from slurmgen.jobfile.requeue import EARLY_SECONDS, signal_seconds
    from slurmgen.slurm.grammars.time import format_time

    signal = None if isinstance(spec.requeue, str) else spec.requeue.signal
    if signal is not None and spec.signal is not None:
        yield _conflict(
            "signal",
            ("signal", "requeue"),
            f"signal {spec.signal} beside requeue, whose signal is {signal}",
            "a job has one signal before its time limit",
            "remove signal, or write requeue: true and keep it",
        )
    why = _launcher(spec).loses_status
    if why:
        yield _conflict(
            "requeue",
            ("requeue", "launcher"),
            (f"requeue on {signal}" if signal else f"requeue: {spec.requeue}")
            + f" with launcher {spec.launcher}",
            why,
            f"use launcher: {launchers.DEFAULT}, where each rank gets the signal and srun ends "
            "with its status, or requeue: true for restarts by Slurm alone",
        )
    if signal is None:
        return
    times = ((spec.time, "time"), (spec.time_min, "time_min"))
    for given, key in times:
        limit = given.seconds if given is not None else None
        needed = signal_seconds(signal) + EARLY_SECONDS
        if limit is not None and limit <= needed:
            yield _conflict(
                key,
                (key, "requeue"),
                f"{key} {format_time(limit)} with the signal {signal}",
                f"Slurm sends it up to {EARLY_SECONDS} s early: the job would have to save as "
                "soon as it has started, and never get on",
                f"write a {key} well over {format_time(-(-needed // 60) * 60)}, or fewer seconds "
                "behind the @",
            )


def _binding(spec: JobKeys) -> Iterator[Refusal]:
    """Binding tasks to GPUs hides the node's other GPUs from them."""
    gpus = 0 if spec.gpus_per_node is None else spec.gpus_per_node.number
    for option in ("gpu-bind", "tres-bind"):
        value = spec.sbatch.get(option)
        if value is not None and "none" not in value and gpus > 1:
            yield _conflict(
                ("sbatch", option),
                ("sbatch", "gpus_per_node"),
                f"{option}: {value} with {gpus} GPUs per node",
                "each task would see some of the node's GPUs only, numbered from 0: the local "
                "rank is no index any more, and NCCL does not reach its peers",
                f"remove {option}: each rank takes its own GPU",
            )


def _options(spec: JobKeys) -> Iterator[Refusal]:
    if not spec.sbatch:
        return
    from slurmgen.slurm.options.conflicts import check_conflicts

    keys = {key for key, value in spec.__dict__.items() if value not in (None, False)}
    for found in check_conflicts({**dict.fromkeys(keys), **spec.sbatch}):
        name = next((option for option in found.involved if option in spec.sbatch), None)
        key = ("sbatch", name) if name else found.key
        yield found.about(key, "sbatch", *found.involved)


_CHECKS = (
    _program,
    _resources,
    _shape,
    _python,
    _times,
    _segments,
    _array_tokens,
    _hosts,
    _environment,
    _exported,
    _signal,
    _requeue,
    _binding,
    _options,
)
