"""A job file's text to a JobSpec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slurmgen.errors import UsageError
from slurmgen.source import KeyPath, Source, parse_yaml
from slurmgen.spec.quick import quick_job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurmgen.spec.job import JobSpec


class LoadedJob(NamedTuple):
    """A valid spec and the file it came from."""

    spec: JobSpec
    source: Source


def load_job(
    text: str,
    path: str,
    *,
    overrides: Sequence[str] = (),
    defaults: Mapping[str, str] | None = None,
) -> LoadedJob:
    """The job of a job file.

    overrides: `KEY=VALUE` of the command line, which come before the file's own; KEY
    may be dotted (`env.NAME=1`), VALUE is YAML. defaults: keys of the cluster profile,
    used where neither gives one.
    Raises InvalidInput with every error found, UsageError for an override without `=`.
    """
    source = parse_yaml(text, path)
    data = dict(source.data)
    elsewhere: dict[KeyPath, str] = {}
    for override in overrides:
        elsewhere[_override(data, override)] = f"--set {override}"
    for key, value in (defaults or {}).items():
        if not any(data.get(rival) is not None for rival in _RIVALS.get(key, (key,))):
            data[key] = value
            elsewhere[(key,)] = f"the cluster profile's default {key}"
    source = source._replace(elsewhere=elsewhere)
    spec = quick_job(data)
    if spec is None:
        from slurmgen.spec.explain import validate
        from slurmgen.spec.job import JobSpec

        spec = validate(JobSpec, data, source)
    return LoadedJob(spec, source)


# Keys of which a job gives one: a profile's default steps back for any of them.
_RIVALS = {
    "mem": ("mem", "mem_per_cpu", "mem_per_gpu"),
    "mem_per_cpu": ("mem", "mem_per_cpu", "mem_per_gpu"),
    "mem_per_gpu": ("mem", "mem_per_cpu", "mem_per_gpu"),
    "cpus_per_task": ("cpus_per_task", "cpus_per_gpu"),
    "cpus_per_gpu": ("cpus_per_task", "cpus_per_gpu"),
}


def _override(data: dict[str, Any], override: str) -> KeyPath:
    """Put one override into `data`; returns the key it changed."""
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise UsageError(f'"{override}" is not KEY=VALUE', fix="write, say, --set nodes=4")
    value = parse_yaml(f"value: {text}" if text else "value: ''", f"--set {key}").data["value"]
    path = key.split(".")
    *parents, last = path
    place = data
    for parent in parents:
        inner = place.get(parent)
        inner = dict(inner) if isinstance(inner, dict) else {}
        place[parent] = inner
        place = inner
    if value is None:
        place.pop(last, None)
    else:
        place[last] = value
    return tuple(path)
