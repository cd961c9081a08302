"""From what a job file says to the one canonical spelling of each kind of value.

Plain functions that take what YAML or Python gives and raise Refusal; `fields.py` makes
Pydantic's types of them. They import a grammar when a job first uses it, and never
Pydantic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slurmgen.errors import Refusal, Refusals
from slurmgen.slurm.quoting import (
    check_argument_length,
    check_directive,
    check_encodable,
    check_one_line,
    is_variable_name,
    split_expansions,
)

if TYPE_CHECKING:
    from slurmgen.slurm.grammars.array import Array
    from slurmgen.slurm.grammars.gres import Gpus
    from slurmgen.slurm.grammars.memory import Memory
    from slurmgen.slurm.grammars.time import Duration

Reader = Callable[[Any], Any]

# Slurm keeps counts of nodes, of tasks on a node and of CPUs in 16 bits, and uses the top
# values itself (NO_VAL16 in slurm/slurm.h).
MOST = 65_533
# Tasks in all: no job has more, and a plan of them can still be drawn.
MOST_TASKS = 16_000_000

# Slurm takes most strings up to this many bytes and then complains of a "Pathname of a
# file, directory or other parameter too long".
_MAX_BYTES = 1024


def text(value: Any) -> str:
    """One value as the text a job file would hold; numbers and truth values come from Python."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if value is None:
        raise Refusal("the value is empty", why="~, null and nothing are no value", fix="give one")
    raise Refusal(
        f"{kind(value)} in place of one value", why="it is one text", fix="write one value"
    )


def kind(value: object) -> str:
    """What a value is that is no text."""
    if value is None:
        return "nothing"
    return "a mapping" if isinstance(value, dict) else "a list"


class Doubtful(Exception):
    """Something is wrong, and Pydantic has the words for it."""


def count(value: Any, most: int = MOST) -> int:
    """A whole number from 1; raises Doubtful."""
    given = text(value)
    if not (given.isascii() and given.isdigit() and len(given) < 10 and 0 < int(given) <= most):
        raise Doubtful
    return int(given)


def nodes(value: Any) -> int:
    """The number of nodes; raises Doubtful."""
    return count(value)


def tasks(value: Any) -> int:
    """The number of tasks in all; raises Doubtful."""
    return count(value, MOST_TASKS)


def cpus(value: Any) -> int | str:
    """A count, or the word `default`; raises Doubtful."""
    return "default" if value == "default" else count(value)


def truth(value: Any) -> bool:
    """True or false; raises Doubtful."""
    if value not in ("true", "false", True, False):
        raise Doubtful
    return value in ("true", True)


def one_of(*allowed: str) -> Reader:
    """The reader of a short list of words; raises Doubtful."""

    def read(value: Any) -> Any:
        if value not in allowed:
            raise Doubtful
        return value

    return read


def _grammar(module: str, function: str) -> Reader:
    def read(value: Any) -> Any:
        given = text(value)
        from importlib import import_module

        return getattr(import_module(f"slurmgen.{module}"), function)(given)

    return read


def _joined(reader: Reader) -> Reader:
    """`reader` of a list too, as Slurm's comma-separated text."""

    def read(value: Any) -> Any:
        return reader(",".join(map(text, value)) if isinstance(value, (list, tuple)) else value)

    return read


def _all(reader: Reader) -> Callable[[Any], tuple[Any, ...]]:
    """`reader` of each item of a list; a single value stands for a list of one."""

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            return (reader(value),)
        items = []
        for index, item in enumerate(value):
            try:
                items.append(reader(item))
            except Refusal as refusal:
                raise refusal.about((index,)) from None
        return tuple(items)

    return read


def word(value: Any) -> str:
    """One argument or value, taken byte for byte."""
    given = text(value)
    check_encodable(given)
    check_argument_length(given, "the value")
    return given


def path(value: Any) -> str:
    """One line that names a file or folder; `${NAME}` expands on the node."""
    given = text(value)
    check_one_line(given)
    if not given:
        raise Refusal("the path is empty", why="it names nothing", fix="remove the key")
    if given.startswith("~"):
        home = given[1:] if given[1:2] in ("", "/") else "/…"
        raise Refusal(
            f'"{given}" starts with ~',
            why="only ${NAME} is expanded in paths; ~ would be a folder of that name",
            fix=f"write ${{HOME}}{home}",
        )
    if given.startswith("-"):
        raise Refusal(
            f'"{given}" starts with a dash',
            why="the program that is given it would take it for an option",
            fix=f"write ./{given}",
        )
    split_expansions(given)
    return given


def _module(value: Any) -> str:
    given = identifier(value)
    if given.startswith("-"):
        raise Refusal(
            f'"{given}" starts with a dash',
            why="module would take it for an option",
            fix="check the name with module avail",
        )
    return given


def bash(value: Any) -> str:
    """Text that is Bash by definition."""
    given = text(value)
    check_encodable(given)
    if "\r" in given:
        raise Refusal(
            "the text holds a carriage return",
            why="sbatch refuses a script with DOS line breaks",
            fix="write plain line breaks; inside a string write $'\\r'",
        )
    return given


def name(value: Any) -> str:
    """Free text of one line, as Slurm keeps it."""
    given = text(value)
    check_directive(given)
    if not given.strip():
        raise Refusal("the value is empty", why="it would say nothing", fix="remove the key")
    size = len(given.encode())
    if size > _MAX_BYTES:
        raise Refusal(
            f"the value is {size} bytes long",
            why=f"Slurm takes {_MAX_BYTES}, and over it complains of a path name",
            fix="shorten it",
        )
    return given


def identifier(value: Any) -> str:
    """A name without blanks."""
    given = name(value)
    if any(character.isspace() for character in given):
        raise Refusal(
            f'"{given}" holds a blank',
            why="no name of an account, partition, QOS or reservation has one",
            fix="check the name",
        )
    return given


def gpus(value: Any) -> Gpus:
    """The GPUs of a node."""
    from slurmgen.slurm.grammars.gres import Gpus, parse_gpus

    return value if isinstance(value, Gpus) else parse_gpus(text(value))


def time(value: Any) -> Duration:
    """A time limit."""
    from slurmgen.slurm.grammars.time import Duration, duration

    return value if isinstance(value, Duration) else duration(text(value))


def memory(value: Any) -> Memory:
    """An amount of memory."""
    from slurmgen.slurm.grammars.memory import Memory, memory

    return value if isinstance(value, Memory) else memory(text(value))


def array(value: Any) -> Array:
    """The tasks of an array; a list is joined by commas."""
    from slurmgen.slurm.grammars.array import Array, parse_array

    if isinstance(value, Array):
        return value
    items = value if isinstance(value, (list, tuple)) else [value]
    return parse_array(",".join(map(text, items)))


def exclusive(value: Any) -> str | None:
    """None for false, else `true`, `user`, `mcs` or `topo`."""
    given = text(value)
    lowered = given.lower()
    if lowered in ("false", "no"):
        return None
    if lowered in ("true", "yes"):
        return "true"
    if lowered not in ("user", "mcs", "topo"):
        raise Refusal(
            f'"{given}" is no value for exclusive',
            why="it is true, user, mcs, or from 24.05 topo",
            fix="write exclusive: true",
        )
    return lowered


def open_mode(value: Any) -> str:
    """`append` or `truncate`, of which Slurm takes any beginning."""
    given = text(value)
    for mode in ("append", "truncate"):
        if given and mode.startswith(given.lower()):
            return mode
    raise Refusal(f'"{given}" is no open mode', why="it is append or truncate", fix="write append")


def _license_list(value: Any) -> str:
    given = identifier(value)
    if "," in given and "|" in given:
        raise Refusal(
            f'"{given}" mixes "," and "|"', why="Slurm takes one of them", fix="use one of them"
        )
    for item in given.replace("|", ",").split(","):
        license_, _, count = item.partition(":")
        counted = count.isascii() and count.isdigit()
        if not license_ or "=" in license_ or (":" in item and not counted):
            raise Refusal(
                f'"{item}" is not a license',
                why="a license is name[@server][:count]",
                fix=f"write {item.replace('=', ':')}" if "=" in item else "write, say, matlab:1",
            )
    return given


def directory(value: Any) -> str:
    """A folder that sbatch takes as it stands."""
    given = text(value)
    check_directive(given)
    if not given or given.startswith("~") or "$" in given:
        raise Refusal(
            f'"{given}" is not a folder',
            why="sbatch expands neither ~ nor variables in directives",
            fix="write the whole path; `cd` in command or setup.commands expands them",
        )
    return given


def template_name(value: Any) -> str:
    """The name of a template, without its suffix."""
    given = text(value)
    parts = given.split("/")
    if parts[0] in ("partials", "slurmgen"):
        raise Refusal(
            f'"{given}" is a part of a template',
            why="by itself it is no script",
            fix="write, say, template: job",
        )
    if not all(p and not p.startswith(".") and p.isprintable() for p in parts) or "\\" in given:
        raise Refusal(
            f'"{given}" is not the name of a template',
            why="it is a file in templates/, without .sbatch.j2",
            fix="write, say, template: job",
        )
    return given


def command(value: Any) -> str | tuple[str, ...]:
    """A `command`: text is Bash, a list is words."""
    if isinstance(value, str):
        given = bash(value)
        if not given.strip():
            raise Refusal("the command is empty", why="nothing would run", fix="write a command")
        check_argument_length(given + "\n", "the command")
        return given
    if not isinstance(value, (list, tuple)):
        raise Refusal(
            f"{kind(value)} in place of a command",
            why="a command is text (Bash) or a list of words",
            fix="write command: python train.py",
        )
    given_words = words(value)
    if not given_words or not given_words[0]:
        raise Refusal("the command has no program", why="nothing would run", fix="name one")
    if given_words[0].startswith("-"):
        raise Refusal(
            f'the program is called "{given_words[0][:40]}"',
            why="srun and torchrun would take it for an option",
            fix=f"write ./{given_words[0][:40]}",
        )
    return given_words


def script(value: Any) -> str:
    """A `script`, which ends with a line break."""
    given = text(value)
    check_encodable(given)
    if "\r\n" in given:
        raise Refusal(
            "the script holds DOS line breaks",
            why="sbatch refuses such a script",
            fix="write plain line breaks",
        )
    if not given.strip():
        raise Refusal("the script is empty", why="nothing would run", fix="write one, or a command")
    return given if given.endswith("\n") else given + "\n"


def environment(value: Any) -> dict[str, str]:
    """Variables and their values, in which `${NAME}` expands on the node."""
    if not isinstance(value, dict):
        raise Refusal(
            f"{kind(value) if not isinstance(value, str) else 'a text'} in place of variables",
            why="it is a mapping of names to values",
            fix="write NAME: value, a line each",
        )
    read: dict[str, str] = {}
    wrong = []
    for variable, given in value.items():
        try:
            read[str(variable)] = _variable(str(variable), given)
        except Refusal as refusal:
            wrong.append(refusal.about(("env", str(variable))))
    if wrong:
        raise Refusals(wrong)
    return read


def _variable(variable: str, value: Any) -> str:
    if not is_variable_name(variable):
        raise Refusal(
            f'"{variable}" cannot be the name of a variable',
            why="a shell variable is letters, digits and _, not starting with a digit",
            fix="rename it",
        )
    if value is None:
        raise Refusal(
            f"{variable} has no value", why="an empty one must be written", fix="write ''"
        )
    given = word(value)
    split_expansions(given)
    check_argument_length(f"{variable}={given}", variable)
    return given


def variables(value: Any) -> dict[str, Any]:
    """`vars:`, for the project's own template."""
    from slurmgen.jobfile.variables import check_name, read_scalar

    if not isinstance(value, dict):
        raise Refusal(
            f"{kind(value) if not isinstance(value, str) else 'a text'} in place of variables",
            why="it is a mapping of names to values",
            fix="write NAME: value, a line each",
        )
    read: dict[str, Any] = {}
    wrong = []
    for variable, given in value.items():
        try:
            check_name(str(variable))
            if isinstance(given, (list, tuple)):
                read[str(variable)] = _all(lambda item: read_scalar(text(item)))(given)
            else:
                read[str(variable)] = read_scalar(text(given))
        except Refusal as refusal:
            wrong.append(refusal.about(("vars", str(variable), *refusal.path)))
    if wrong:
        raise Refusals(wrong)
    return read


words = _all(word)
paths = _all(path)
module_names = _all(_module)
bash_lines = _all(bash)
name_list = _joined(identifier)
licenses = _joined(_license_list)
node_count = _grammar("slurm.grammars.nodes", "check_node_count")
time_text = _grammar("slurm.grammars.time", "canonical_time")
memory_text = _grammar("slurm.grammars.memory", "canonical_memory")
gres = _joined(_grammar("slurm.grammars.gres", "parse_gres"))
host_list = _joined(_grammar("slurm.grammars.nodes", "canonical_hostlist"))
constraint = _grammar("slurm.grammars.constraint", "canonical_constraint")
begin = _grammar("slurm.grammars.begin", "canonical_begin")
dependency = _grammar("slurm.grammars.dependency", "canonical_dependency")
signal = _grammar("slurm.grammars.signal", "canonical_signal")
requeue_signal = _grammar("jobfile.requeue", "requeue_signal")
restarts = _grammar("jobfile.requeue", "restarts")
mail_type = _joined(_grammar("slurm.grammars.mail", "canonical_mail_type"))
log_pattern = _grammar("slurm.grammars.filename", "check_pattern")
export = _grammar("slurm.grammars.export", "canonical_export")
