"""The kinds of value a job file has: each reads one spelling and keeps the canonical one."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from slurmgen.errors import Refusal
from slurmgen.quoting import check_argument_length, check_one_line
from slurmgen.spec.base import read, scalar_text

# Slurm keeps most strings in fields of this many characters and then complains of a
# "Pathname of a file, directory or other parameter too long".
_MAX_CHARACTERS = 1024


def _lazily(module: str, function: str) -> BeforeValidator:
    """The reader `function` of a module of this package, imported when first needed.

    A job file uses a few of the grammars, and `render` should not pay for the others.
    """

    def parse(value: Any) -> Any:
        if not isinstance(value, str):
            raise Refusal(
                f"{_kind(value)} in place of one value", why="it is one text", fix="write one value"
            )
        from importlib import import_module

        return getattr(import_module(f"slurmgen.spec.{module}"), function)(value)

    return read(parse)


def _kind(value: object) -> str:
    return "a mapping" if isinstance(value, dict) else "a list"


def _name(text: str) -> str:
    check_one_line(text)
    if not text.strip():
        raise Refusal("the value is empty", why="it would say nothing", fix="remove the key")
    if len(text) > _MAX_CHARACTERS:
        raise Refusal(
            f"the value is {len(text)} characters long",
            why=f"Slurm takes {_MAX_CHARACTERS}, and over it complains of a path name",
            fix="shorten it",
        )
    return text


def _identifier(text: str) -> str:
    _name(text)
    if any(character.isspace() for character in text):
        raise Refusal(
            f'"{text}" holds a blank',
            why="no name of an account, partition, QOS or reservation has one",
            fix="check the name",
        )
    return text


def _joined(value: Any) -> Any:
    """A list as Slurm's comma-separated text."""
    if isinstance(value, (list, tuple)):
        return ",".join(str(scalar_text(item)) for item in value)
    return scalar_text(value)


def _gpus(text: str) -> str:
    from slurmgen.spec.gres import format_gpus, parse_gpus

    return format_gpus(*parse_gpus(text))


def _exclusive(text: str) -> str | None:
    lowered = text.lower()
    if lowered in ("false", "no"):
        return None
    if lowered in ("true", "yes"):
        return "true"
    if lowered not in ("user", "mcs", "topo"):
        raise Refusal(
            f'"{text}" is no value for exclusive',
            why="it is true, user, mcs, or from 24.05 topo",
            fix="write exclusive: true",
        )
    return lowered


def _open_mode(text: str) -> str:
    lowered = text.lower()
    if lowered and "append".startswith(lowered):
        return "append"
    if lowered and "truncate".startswith(lowered):
        return "truncate"
    raise Refusal(f'"{text}" is no open mode', why="it is append or truncate", fix="write append")


def _licenses(text: str) -> str:
    _identifier(text)
    if "," in text and "|" in text:
        raise Refusal(
            f'"{text}" mixes "," and "|"', why="Slurm takes one of them", fix="use one of them"
        )
    return text


def _directory(text: str) -> str:
    check_one_line(text)
    if not text or text.startswith("~") or "$" in text:
        raise Refusal(
            f'"{text}" is not a folder',
            why="sbatch expands neither ~ nor variables in directives",
            fix="write the whole path; `cd` in command or setup.commands expands them",
        )
    return text


def _template_name(text: str) -> str:
    parts = text.split("/")
    if not all(p and not p.startswith(".") and p.isprintable() for p in parts) or "\\" in text:
        raise Refusal(
            f'"{text}" is not the name of a template',
            why="it is a file in templates/, without .sbatch.j2",
            fix="write, say, template: job",
        )
    return text


def command(value: Any) -> Any:
    """A `command`: text stays text, a list becomes words; raises Refusal."""
    if isinstance(value, str):
        if not value.strip():
            raise Refusal("the command is empty", why="nothing would run", fix="write a command")
        check_argument_length(value + "\n", "the command")
    elif isinstance(value, (list, tuple)):
        words = [scalar_text(word) for word in value]
        if not words or not words[0]:
            raise Refusal("the command has no program", why="nothing would run", fix="name one")
        if isinstance(words[0], str) and words[0].startswith("-"):
            raise Refusal(
                f'the program is called "{words[0][:40]}"',
                why="srun and torchrun would take it for an option",
                fix=f"write ./{words[0][:40]}",
            )
        return tuple(words)
    elif value is not None:
        raise Refusal(
            f"{_kind(value)} in place of a command",
            why="a command is text (Bash) or a list of words",
            fix="write command: python train.py",
        )
    return value


def _options(value: Any) -> Any:
    """`sbatch:` with every option checked; a plugin's own are taken as they are."""
    if not isinstance(value, dict):
        return value
    return {str(name).replace("_", "-"): _option(str(name), v) for name, v in value.items()}


def _option(name: str, value: Any) -> str | None:
    from slurmgen.spec.hints import OWN_KEYS
    from slurmgen.spec.values import check_option, decided_by

    if isinstance(value, dict):
        return _plugin_option(name, value)
    text = scalar_text(value)
    if text is not None and not isinstance(text, str):
        raise Refusal(f"{name} is {_kind(value)}", why="an option has one value", fix="write one")
    key = decided_by(name, OWN_KEYS)
    if key is not None:
        raise Refusal(
            f"{name} does not belong under sbatch",
            why="the number of ranks and what they get follow from the job file's own keys",
            fix=f"write {key} at the top of the job file",
        )
    return check_option(name, text, None)


def _plugin_option(name: str, value: dict[str, Any]) -> str | None:
    from slurmgen.spec import catalog

    marked = str(scalar_text(value.get("plugin", ""))).lower() == "true"
    if not marked or set(value) - {"plugin", "value"}:
        raise Refusal(
            f"{name} is a mapping",
            why="that is for the option of a site's plugin",
            fix=f"write {name}: {{value: …, plugin: true}}",
        )
    plain = name.replace("-", "").replace("_", "")
    if catalog.find(name) is not None or not (plain.isascii() and plain.isalnum()):
        raise Refusal(
            f"{name} is not a plugin's option",
            why="sbatch has it itself" if plain.isalnum() else "it is no name of an option",
            fix=f"write {name}: VALUE",
        )
    given = scalar_text(value.get("value"))
    if given is None or given == "true":
        return None
    check_one_line(str(given))
    return str(given)


Name = Annotated[str, BeforeValidator(scalar_text), AfterValidator(_name)]
Identifier = Annotated[str, BeforeValidator(scalar_text), AfterValidator(_identifier)]
NameList = Annotated[str, BeforeValidator(_joined), AfterValidator(_identifier)]
Licenses = Annotated[str, BeforeValidator(_joined), AfterValidator(_licenses)]
Directory = Annotated[str, BeforeValidator(scalar_text), AfterValidator(_directory)]
TemplateName = Annotated[str, BeforeValidator(scalar_text), AfterValidator(_template_name)]
Exclusive = Annotated[str | None, read(_exclusive)]
OpenMode = Annotated[str, read(_open_mode)]
GpuCount = Annotated[str, read(_gpus)]
NodeCount = Annotated[int, _lazily("nodes", "check_node_count")]
Time = Annotated[str, _lazily("time", "canonical_time")]
Memory = Annotated[str, _lazily("memory", "canonical_memory")]
Gres = Annotated[str, BeforeValidator(_joined), _lazily("gres", "parse_gres")]
HostList = Annotated[str, _lazily("nodes", "canonical_hostlist"), BeforeValidator(_joined)]
Constraint = Annotated[str, _lazily("constraint", "canonical_constraint")]
Begin = Annotated[str, _lazily("begin", "canonical_begin")]
Array = Annotated[str, _lazily("array", "canonical_array")]
Dependency = Annotated[str, _lazily("dependency", "canonical_dependency")]
Signal = Annotated[str, _lazily("signal", "canonical_signal")]
MailType = Annotated[str, _lazily("mail", "canonical_mail_type"), BeforeValidator(_joined)]
LogPattern = Annotated[str, _lazily("filename", "check_pattern")]
Export = Annotated[str, _lazily("export", "canonical_export")]
OtherOptions = Annotated[dict[str, str | None], BeforeValidator(_options)]
