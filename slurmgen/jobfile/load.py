"""A job file's text to a JobSpec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from slurmgen.errors import InvalidInput, Refusal, UsageError
from slurmgen.jobfile.keys import rivals
from slurmgen.jobfile.source import Source, at_key, parse_yaml
from slurmgen.jobfile.without_pydantic import quick_job
from slurmgen.slurm.quoting import check_encodable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.diagnostics import Diagnostic, KeyPath
    from slurmgen.jobfile.job import JobSpec


class LoadedJob(NamedTuple):
    """A valid spec and the file it came from.

    given: the file's keys and values, with what the command line changed of them.
    """

    spec: JobSpec
    source: Source
    given: Mapping[str, Any]


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
    Raises InvalidInput with every error found, UsageError for an override that is none.
    """
    return job_of(parse_yaml(text, path), overrides=overrides, defaults=defaults)


def load_keys(
    keys: Mapping[str, Any], name: str, *, defaults: Mapping[str, str] | None = None
) -> LoadedJob:
    """The job of keys that come from Python, which no file has held; name: what they are of.

    Raises InvalidInput with every error found.
    """
    source = Source(name, "", dict(keys), {})
    wrong = [at_key(refusal, source) for refusal in _not_for_a_file(keys, ())]
    if wrong:
        raise InvalidInput(wrong)
    return job_of(source, defaults=defaults)


def _not_for_a_file(value: Any, key: KeyPath) -> Iterator[Refusal]:
    """What a job file could not say: its keys and values are text, of bounded depth."""
    name = ".".join(map(str, key)).encode(errors="backslashreplace").decode()[:60]
    if len(key) > _MAX_DEPTH:
        what = f"{name} is nested too deep"
        yield Refusal(what, why="no value is", fix="write less", key=key)
    elif isinstance(value, Mapping):
        for inner, item in value.items():
            if isinstance(inner, str):
                yield from _not_for_a_file(item, (*key, inner))
            else:
                what = f"{name} has {ascii(inner)[:60]} for a key"
                yield Refusal(what, why="a key is text", fix="write it in quotes", key=key)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _not_for_a_file(item, (*key, index))
    elif isinstance(value, int) and value.bit_length() > 64:
        what = f"{name} is a number of more than 64 bits"
        why = "no number of a job is so large"
        yield Refusal(what, why=why, fix="write a smaller one", key=key)
    for text in (key[-1] if key else "", value):
        try:
            if isinstance(text, str):
                check_encodable(text)
        except Refusal as refusal:
            yield refusal.about(key)


# As in a file (`source.py`).
_MAX_DEPTH = 32


def job_of(
    source: Source, *, overrides: Sequence[str] = (), defaults: Mapping[str, str] | None = None
) -> LoadedJob:
    """The same of data that is read already."""
    data = dict(source.data)
    elsewhere: dict[KeyPath, str] = {}
    for override in overrides:
        elsewhere[_override(data, override)] = f"--set {override}"
    given = dict(data)
    for key, value in (defaults or {}).items():
        if not any(data.get(rival) is not None for rival in rivals(key)):
            data[key] = value
            elsewhere[(key,)] = f"the cluster profile's default {key}"
    source = source._replace(elsewhere=elsewhere)
    spec = quick_job(data)
    if spec is None:
        from slurmgen.jobfile.explain import validate
        from slurmgen.jobfile.job import JobSpec

        spec = validate(JobSpec, data, source)
    return LoadedJob(spec, source, given)


# Keys whose value may be short for one of their own keys, which an override completes.
_SHORT_FOR: dict[KeyPath, str] = {("setup", "modules"): "load", ("setup", "container"): "image"}
# What stands before the value of an override where YAML reads it.
_PREFIX = "value: "


def _override(data: dict[str, Any], override: str) -> KeyPath:
    """Put one override into `data`; returns the key it changed."""
    key, equals, text = override.partition("=")
    path = tuple(key.split("."))
    if not equals or not all(path):
        raise UsageError(f'"{override}" is not KEY=VALUE', fix="write, say, --set nodes=4")
    if any("\udc80" <= character <= "\udcff" for character in key):
        raise UsageError(
            f"--set {ascii(key)[1:60]}… names a key by bytes that are not UTF-8 text",
            fix="write the key as UTF-8",
        )
    if len(path) > _MAX_PARTS:
        raise UsageError(
            f'"{key[:60]}" is deeper than any key of a job file', fix="write, say, --set nodes=4"
        )
    value = _value(key, text)
    if path[0] == "sbatch" and len(path) > 1:
        # Options may be written either way, and the file's own must not stand beside it.
        path = ("sbatch", path[1].replace("_", "-"), *path[2:])
    place = data
    for depth, parent in enumerate(path[:-1], start=1):
        inner = _as_mapping(place.get(parent), path[:depth])
        if path[:depth] == ("sbatch",):
            inner = {path[1] if _is_option(k, path[1]) else k: v for k, v in inner.items()}
        place[parent] = inner
        place = inner
    if value is None:
        place.pop(path[-1], None)
    else:
        place[path[-1]] = value
    return path


# sbatch, an option, its `value`; setup, container, image.
_MAX_PARTS = 3


def _is_option(name: str, option: str) -> bool:
    return name.replace("_", "-") == option


def _as_mapping(value: Any, path: KeyPath) -> dict[str, Any]:
    """A copy of what stands at `path`, as a mapping that takes another key."""
    if value is None or isinstance(value, dict):
        return dict(value or {})
    # What is given for an option is the `value` of a plugin's option.
    option = path[0] == "sbatch" and len(path) == 2
    short = "value" if option else _SHORT_FOR.get(path)
    if short is None:
        name = ".".join(map(str, path))
        raise UsageError(
            f"{name} has no keys that --set could change: it is one value or a list",
            fix=f"replace it as a whole: --set {name}=…",
        )
    return {short: value}


def _value(key: str, text: str) -> Any:
    """What stands behind `KEY=`, as YAML."""
    path = f"--set {key}"
    if not text:
        return ""
    try:
        data = parse_yaml(_PREFIX + text, path).data
    except InvalidInput as error:
        raise InvalidInput([_without_prefix(found) for found in error.diagnostics]) from None
    if len(data) > 1:
        raise UsageError(
            f"{path} is followed by more than one value",
            fix="give each key a --set of its own, and quotes to a value of several lines",
        )
    return data["value"]


def _without_prefix(found: Diagnostic) -> Diagnostic:
    place = found.location
    if place.line == 1:
        place = place._replace(column=max(1, place.column - len(_PREFIX)))
    return found._replace(location=place)
