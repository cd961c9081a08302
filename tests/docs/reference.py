"""docs/reference/job-file.md, from the models: what a key is, and what it renders to."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

import yaml
from pydantic_core import PydanticUndefined

from slurmgen.cli.schemas import schema
from slurmgen.cluster import generic
from slurmgen.jobfile.job import JobSpec
from slurmgen.jobfile.keys import KEYS, PROGRAMS, example
from slurmgen.jobfile.load import load_job
from slurmgen.jobfile.model import Requeue
from slurmgen.jobfile.schema import DIGITS
from slurmgen.jobfile.setup import Container, Modules, Setup
from slurmgen.script.plan import resolve
from slurmgen.script.render import render

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

# More lines than this are shortened in the middle.
_MOST_LINES = 14

# What they render to is not lines of their own.
_WITHOUT_OUTPUT = {
    "template": "The script is laid out by `templates/job.sbatch.j2` of your project, or the "
    "built-in one. See [template](../commands/template.md).",
    "vars": "Read by a template of your own, as `vars.profile`. See "
    "[template](../commands/template.md).",
}
_PARTS: dict[str, tuple[type[BaseModel], ...]] = {
    "requeue": (Requeue,),
    "setup": (Setup, Modules, Container),
}
_TITLES = {
    Requeue: "requeue",
    Setup: "setup",
    Modules: "setup.modules",
    Container: "setup.container",
}

_PREFACE = """\
# The job file

Every key, from `slurmgen/jobfile/keys.py`; written by `make docs`. Below an example stands
what it adds to the script, as `slurmgen render` prints it without a cluster profile (`...`: lines
left out). Keys are Slurm's long options with underscores. An unknown key, a value that Slurm would
take for another one, and keys that contradict each other are errors, all of them at once.

A job file needs one of `command`, `ddp` and `script`; everything else has a default. `key:` without
a value is its default. It is YAML 1.2: `4:00:00` is text and `NO` too.

What expands where: `command` text is Bash, evaluated in each task; a `command` list is words, byte
for byte; in `env` values and in paths `${NAME}` expands on the node, and `$${` is a literal `${`;
`setup.commands` is Bash for the batch shell. Nothing else is code.
"""


def page() -> str:
    """The whole page."""
    properties = schema("job")["properties"]
    groups: dict[str, list[str]] = {}
    for name, key in KEYS.items():
        groups.setdefault(key.group, []).append(_key(name, JobSpec.model_fields[name], properties))
    parts = [_PREFACE]
    for title, keys in groups.items():
        parts += [f"## {title}\n", *keys]
    return "\n".join(parts)


def _key(name: str, field: FieldInfo, properties: dict[str, Any]) -> str:
    shape, shown = properties[name], example(name)
    said, usual = _described(field)
    text = [f"### {name}\n", f"{_sentence(said)}\n" if said else ""]
    text.append(f"Type: {_type(shape)}. Default: {usual}.\n")
    text.append(f"```yaml\n{shown}\n```\n")
    if name in _WITHOUT_OUTPUT:
        text.append(_WITHOUT_OUTPUT[name] + "\n")
    else:
        text.append(f"```bash\n{_added(shown, name)}\n```\n")
    for model in _PARTS.get(name, ()):
        text.append(_table(model))
    return "\n".join(part for part in text if part)


def _table(model: type[BaseModel]) -> str:
    definitions = schema("job")["$defs"]
    rows = [f"| key of `{_TITLES[model]}` | type | default | |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        shape = definitions[model.__name__]["properties"][name]
        said, usual = _described(field)
        cells = (f"`{name}`", _type(shape), usual, said)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _described(field: FieldInfo) -> tuple[str, str]:
    """What the model says of a key, and its default, which may be said there too."""
    said, found, usual = (field.description or "").partition("default: ")
    if not found or said.endswith("`"):
        return field.description or "", _default(field)
    return said.rstrip("; "), usual


def _sentence(text: str) -> str:
    # What begins with a name, such as train.py, keeps it.
    first = text.split(maxsplit=1)[0]
    return (text[0].upper() + text[1:] if first.isalpha() else text) + "."


_KINDS = {"string": "text", "integer": "whole number", "number": "", "boolean": "true or false"}


def _type(shape: dict[str, Any]) -> str:
    """In words: `text, or a list of text`."""
    found: list[str] = []
    for branch in _branches(shape):
        if "enum" in branch or "const" in branch:
            values = branch.get("enum", [branch.get("const")])
            shown = [f"`{str(v).lower()}`" for v in values if v is not None]
            words = ", ".join(dict.fromkeys(shown))
        elif "$ref" in branch or branch.get("type") == "object":
            words = "mapping"
        elif branch.get("type") == "array":
            words = "list"
        else:
            kinds = branch.get("type", [])
            names = [kinds] if isinstance(kinds, str) else kinds
            # Text may stand without quotes though it looks like a number, and the other way round.
            if "integer" in names and branch.get("pattern", DIGITS) == DIGITS:
                names = ["integer"]
            elif "string" in names:
                names = ["string"]
            words = " or ".join(filter(None, (_KINDS.get(one, "") for one in names)))
        if words and words not in found:
            found.append(words)
    return ", or ".join(found) or "text"


def _branches(shape: dict[str, Any]) -> list[dict[str, Any]]:
    for key in ("anyOf", "oneOf"):
        if key in shape:
            return [leaf for branch in shape[key] for leaf in _branches(branch)]
    return [shape]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    if field.default in (None, (), {}, PydanticUndefined):
        return "none"
    if isinstance(field.default, Setup):
        return "none"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def _added(given: str, name: str) -> str:
    """The lines that a script has because of an example."""
    whole = given
    if not set(PROGRAMS) & set(yaml.safe_load(given)):
        whole += "\ncommand: python train.py"
    context = [line for line in given.split("\n") if not line.startswith((f"{name}:", " "))]
    before = "\n".join(context)
    if not set(PROGRAMS) & set(yaml.safe_load(before) or {}):
        before += (
            "\ncommand: 'true'" if name in ("command", "ddp") else "\ncommand: python train.py"
        )
    without = set(_commands(before))
    found = [one for one in _commands(whole) if one not in without and not _is_aside(one)]
    added = "".join(found).splitlines()
    if not added:
        raise ValueError(f"{name}: the example adds nothing to the script")
    if len(added) > _MOST_LINES:
        added = [*added[: _MOST_LINES // 2], "...", *added[-_MOST_LINES // 2 :]]
    return textwrap.dedent("\n".join(added))


def _is_aside(command: str) -> bool:
    """Remarks, and the long list of what is left over from another job."""
    return command.lstrip().startswith(("# ", "unset SLURM_CONSTRAINT"))


def _commands(text: str) -> list[str]:
    """The script of a job file, a command at a time."""
    script = render(resolve(load_job(text, "job.yaml").spec, generic.PROFILE))
    return re.findall(r"(?:.*\\\n)*.*\n", script)
