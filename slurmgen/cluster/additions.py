"""What a profile adds to a job: directives, words of srun, variables and modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.launchers import TASKS, find

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.cluster.ask import Ask
    from slurmgen.cluster.conditions import Circumstances
    from slurmgen.cluster.profile import Profile
    from slurmgen.jobfile.job import JobSpec


class Added(NamedTuple):
    """In the order of the profile; of a directive or a variable given twice the last counts."""

    sbatch: Mapping[str, str | None]
    srun: tuple[str, ...]
    env: Mapping[str, str]
    task_env: Mapping[str, str]
    module_use: tuple[str, ...]
    modules: tuple[str, ...]


def of(spec: JobSpec, profile: Profile, ask: Ask) -> Added:
    """Everything that `profile` adds to the job."""
    added = Added(
        profile.sbatch, profile.srun, profile.env, {}, profile.module_use, profile.modules
    )
    if not profile.add and profile.binding is None:
        return added
    from slurmgen.cluster import conditions

    job = conditions.of(spec, profile, ask)
    for addition in profile.add:
        if conditions.holds(addition.when, job):
            added = Added(
                {**added.sbatch, **addition.sbatch},
                added.srun + addition.srun,
                {**added.env, **addition.env},
                {**added.task_env, **addition.task_env},
                added.module_use + addition.module_use,
                added.modules + addition.modules,
            )
    return added._replace(srun=_binding(profile, ask, job) + added.srun)


def _binding(profile: Profile, ask: Ask, job: Circumstances) -> tuple[str, ...]:
    if profile.binding is None or not ask.gpus or find(job.launcher).ranks != TASKS:
        return ()
    if not job.whole_nodes:
        return profile.binding.shared_nodes
    # Masks name the cores of a GPU's share: fewer of them may not even be the job's.
    share = ask.node_type.cpus_per_gpu if ask.node_type is not None else None
    return profile.binding.whole_nodes if share in (None, ask.cpus_per_task) else ()
