"""Pydantic's errors in the words of a job file, each with its place."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from slurmgen.diagnostics import ERROR, Diagnostic
from slurmgen.errors import InvalidInput, Refusal, Refusals
from slurmgen.jobfile.hints import FOREIGN_KEYS
from slurmgen.jobfile.job import JobSpec
from slurmgen.jobfile.source import Source, at_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    from slurmgen.diagnostics import KeyPath


def validate(model: type[Any], data: Mapping[str, Any], source: Source) -> Any:
    """`model` of `data`; raises InvalidInput with the place of every error."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
    diagnostics = [found for detail in details for found in _diagnose(detail, model, data, source)]
    diagnostics += _errors_among_the_valid(model, data, source, details)
    raise InvalidInput(diagnostics)


def _errors_among_the_valid(
    model: type[Any], data: Mapping[str, Any], source: Source, details: list[ErrorDetails]
) -> list[Diagnostic]:
    """What is wrong between the keys that are valid by themselves.

    Pydantic checks keys together only once each of them is valid; a person wants all
    errors at once. So the wrong keys are left out, and whatever is then said about them
    is not repeated.
    """
    wrong = {str(detail["loc"][0]) for detail in details if detail["loc"]}
    if not wrong or model is not JobSpec:
        return []
    rest = {key: value for key, value in data.items() if key not in wrong}
    try:
        model.model_validate(rest)
    except ValidationError as error:
        found = []
        for detail in error.errors(include_url=False):
            cause = detail.get("ctx", {}).get("error")
            if isinstance(cause, Refusals):
                kept = [p for p in cause.problems if not wrong & set(p.involved)]
                found += [at_key(p, source) for p in kept]
        return found
    return []


def _diagnose(
    detail: ErrorDetails, model: type[BaseModel], data: Mapping[str, Any], source: Source
) -> list[Diagnostic]:
    location = _key_path(detail["loc"], data)
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, Refusals):
        return [at_key(p, source) for p in cause.problems]
    if detail["type"] == "extra_forbidden":
        return [_unknown_key(location, model, source)]
    refusal = cause if isinstance(cause, Refusal) else _explain(detail, location)
    return [refusal.at(source.locate((*location, *refusal.path)))]


def _key_path(loc: tuple[int | str, ...], data: Any) -> KeyPath:
    """Pydantic's `loc` without the tags of unions, which are no keys of the file."""
    path: list[int | str] = []
    for part in loc:
        if isinstance(data, dict) and part in data:
            data = data[str(part)]
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        elif path:
            continue
        else:
            data = None
        path.append(part)
    return tuple(path)


def _unknown_key(location: KeyPath, model: type[BaseModel], source: Source) -> Diagnostic:
    name = str(location[-1])
    known = _keys_at(model, location[:-1])
    place = source.locate(location, at_key=True)
    where = f" in {'.'.join(map(str, location[:-1]))}" if len(location) > 1 else ""
    foreign = FOREIGN_KEYS.get(name.replace("-", "_")) if len(location) == 1 else None
    close = get_close_matches(name.replace("-", "_").lower(), known, n=1)
    if foreign is not None:
        why, fix = foreign
    elif close:
        why, fix = "", f'write "{close[0]}"'
    else:
        why, fix = "", f"known here: {', '.join(known)}"
        if len(location) == 1:
            fix = "another option of sbatch goes under `sbatch:`"
    message = f'unknown key "{name}"{where}'
    return Diagnostic(place, "unknown-key", "SG003", ERROR, message, why, fix)


def _keys_at(model: type[BaseModel], path: KeyPath) -> list[str]:
    """The keys of the model that stands at `path`."""
    from typing import get_args

    found: Any = model
    for part in path:
        fields = getattr(found, "model_fields", {})
        if part not in fields:  # one of a list of models, or of a mapping to them
            continue
        options = [fields[part].annotation]
        for option in options:  # which grows: unions and annotations stand inside each other
            options += get_args(option)
        found = next((o for o in options if hasattr(o, "model_fields")), None)
    return sorted(getattr(found, "model_fields", {}))


_KINDS = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
}


def _explain(detail: ErrorDetails, location: KeyPath) -> Refusal:
    """Pydantic's own kinds of error in the words of a job file."""
    key = ".".join(str(part) for part in location) or "the file"
    kind, context, given = detail["type"], detail.get("ctx", {}), detail["input"]
    shown = _shown(given)
    if kind == "missing":
        missing = detail["loc"][-1]
        inside = location if location[-1:] != (missing,) else location[:-1]
        key = ".".join(str(part) for part in (*inside, missing))
        return Refusal(f"{key} is missing", why="it has no default", fix=f"add {missing}:")
    if kind == "literal_error":
        expected = str(context.get("expected", "")).replace("'", "")
        close = get_close_matches(str(given), expected.replace(" or ", ", ").split(", "), n=1)
        fix = f"write {close[0]}" if close else f"write {expected}"
        return Refusal(f"{key} is {shown}", why=f"it is one of {expected}", fix=fix)
    if kind == "greater_than_equal":
        least = context["ge"]
        return Refusal(f"{key} is {shown}", why=f"the least is {least}", fix=f"write {least}")
    if kind == "int_parsing_size":
        why = "it must be a whole number, and no count of a job has so many digits"
        return Refusal(f"{key} is {shown}", why=why, fix="write a smaller number")
    if kind == "less_than_equal":
        most = context["le"]
        return Refusal(f"{key} is {shown}", why=f"the most is {most}", fix=f"write {most} or less")
    if kind in _KINDS:
        wanted = " ".join([_KINDS[kind], *_alternative(detail)])
        fix = f"give {wanted}"
        if given is None:
            fix += ", or remove the key (for empty text write '')"
        return Refusal(f"{key} is {shown}", why=f"it must be {wanted}", fix=fix)
    return Refusal(
        f"{key} is {shown}",
        why="the key takes no such value",
        fix="write another one, or remove it",
    )


def _alternative(detail: ErrorDetails) -> list[str]:
    """What a key takes besides, which its type has as a tag."""
    return [tag for tag in map(str, detail["loc"]) if tag.startswith("or ")]


def _shown(given: object) -> str:
    """A wrong value in a message, however long it is."""
    if given is None:
        return "nothing"
    if isinstance(given, (dict, list, tuple)):
        return "a mapping" if isinstance(given, dict) else "a list"
    text = str(given)
    return f'"{text[:60]}…"' if len(text) > 60 else f'"{text}"'
