"""The directives of a job with a `script` of its own: those that are given, and no other.

The script may start anything, any number of times, so nothing can be decided for it; a
default that was added here would ask Slurm for something else than the script did before
it came into the job file. What the script must not lose is exactly what it said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.jobfile.keys import OPTIONS, Directive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.cluster.profile import Profile
    from slurmgen.jobfile.job import JobSpec


def directives_as_given(spec: JobSpec, profile: Profile) -> Iterator[Directive]:
    """Every key under `spec` that is an option, then what `sbatch` holds."""
    values = spec.__dict__
    gpus, gres = spec.gpus_per_node, spec.gres
    with_gres = gpus is not None and (spec.gpu_form or profile.gpus.form) != "gpus-per-node"
    for key, option in OPTIONS.items():
        value = values.get(key)
        # `nodes` alone has a default.
        if value is None or key not in spec.model_fields_set:
            continue
        if key == "gpus_per_node" and with_gres:
            yield Directive("gres", f"gpu:{gpus},{gres}" if gres else f"gpu:{gpus}", (key,))
        elif (key == "gres" and with_gres) or (key == "cpus_per_task" and value == "default"):
            continue
        elif key == "requeue":
            yield Directive("requeue" if value else "no-requeue", None, (key,))
        elif key == "exclusive":
            yield Directive(option, None if value == "true" else value, (key,))
        else:
            yield Directive(option, str(value), (key,))
    for option, value in spec.sbatch.items():
        yield Directive(option, value, ("sbatch", option))
