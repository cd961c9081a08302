"""The directives of a job with a `script` of its own: those that are given, and no other.

The script may start anything, any number of times, so nothing can be decided for it; a
default that was added here would ask Slurm for something else than the script did before
it came into the job file. What the script must not lose is exactly what it said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.cluster.profile import Profile
    from slurmgen.source import KeyPath
    from slurmgen.spec.job import JobSpec


class Given(NamedTuple):
    """An option, its value (None: a flag) and the key that gives it."""

    option: str
    value: str | None
    key: KeyPath


# In the order in which they are rendered.
_KEYS = tuple(
    """
    job_name comment account partition qos reservation constraint nodes ntasks ntasks_per_node
    gpus_per_node gres cpus_per_task cpus_per_gpu mem mem_per_cpu mem_per_gpu exclusive nodelist
    exclude licenses time time_min begin deadline array dependency signal mail_type mail_user
    output error input open_mode chdir export requeue
    """.split()
)


def directives_as_given(spec: JobSpec, profile: Profile) -> Iterator[Given]:
    """Every key under `spec` that is an option, then what `sbatch` holds."""
    values = spec.__dict__
    gpus, gres = spec.gpus_per_node, spec.gres
    with_gres = gpus is not None and (spec.gpu_form or profile.gpus.form) != "gpus-per-node"
    for key in _KEYS:
        value = values.get(key)
        option = key.replace("_", "-")
        # `nodes` alone has a default.
        if value is None or key not in spec.model_fields_set:
            continue
        if key == "gpus_per_node" and with_gres:
            yield Given("gres", f"gpu:{gpus},{gres}" if gres else f"gpu:{gpus}", (key,))
        elif (key == "gres" and with_gres) or (key == "cpus_per_task" and value == "default"):
            continue
        elif key == "requeue":
            yield Given("requeue" if value else "no-requeue", None, (key,))
        elif key == "exclusive":
            yield Given(option, None if value == "true" else value, (key,))
        else:
            yield Given(option, str(value), (key,))
    for option, value in spec.sbatch.items():
        yield Given(option, value, ("sbatch", option))
