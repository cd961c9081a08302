"""What every model of the spec shares: strictness, and the kinds of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from slurmgen.errors import Refusal
from slurmgen.quoting import (
    check_argument_length,
    check_encodable,
    check_one_line,
    is_variable_name,
    split_expansions,
)


class SpecModel(BaseModel):
    """Frozen, and no key that is not declared."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


def scalar_text(value: Any) -> Any:
    """A number or truth value from Python as the text a job file would hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    return value


def read(parse: Callable[[Any], Any]) -> BeforeValidator:
    """A validator that leaves None alone and gives everything else to `parse`."""

    def validate(value: Any) -> Any:
        return None if value is None else parse(scalar_text(value))

    return BeforeValidator(validate)


def _list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _word(text: str) -> str:
    check_encodable(text)
    check_argument_length(text, "the value")
    return text


def _path(text: str) -> str:
    check_one_line(text)
    if not text:
        raise Refusal("the path is empty", why="it names nothing", fix="remove the key")
    if text.startswith("~"):
        raise Refusal(
            f'"{text}" starts with ~',
            why="only ${NAME} is expanded in paths; ~ would be a folder of that name",
            fix=f"write ${{HOME}}{text[1:] if text[1:2] in ('', '/') else '/…'}",
        )
    split_expansions(text)
    return text


def _bash(text: str) -> str:
    check_encodable(text)
    if "\r" in text:
        raise Refusal(
            "the text holds a carriage return",
            why="sbatch refuses a script with DOS line breaks",
            fix="write plain line breaks; inside a string write $'\\r'",
        )
    return text


def _env(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not is_variable_name(name):
            raise Refusal(
                f'"{name}" cannot be the name of a variable',
                why="a shell variable is letters, digits and _, not starting with a digit",
                fix="rename it",
            )
        split_expansions(text)
        check_argument_length(f"{name}={text}", f"{name}")
    return value


# One argument or value, taken byte for byte.
Word = Annotated[str, BeforeValidator(scalar_text), AfterValidator(_word)]
# One line that names a file or folder; ${NAME} expands on the node.
Path = Annotated[str, BeforeValidator(scalar_text), AfterValidator(_path)]
# Text that is Bash by definition.
Text = Annotated[str, BeforeValidator(scalar_text), AfterValidator(_bash)]
# A single value where a list is meant.
WordList = BeforeValidator(_list)
Environment = Annotated[dict[str, Word], AfterValidator(_env)]
