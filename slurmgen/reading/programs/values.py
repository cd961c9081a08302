"""What an expression of a program is known to be: a small symbolic tree, never a guess.

kinds of Value, and what the other fields then hold:

    constant   literal
    name       name: a dotted name that no assignment explains: ``torch.nn.Linear``, ``print``
    function   name: a function or class of the program itself: ``__main__.train``, ``utils.Net``
    instance   name: the class; parts: what was passed
    env        name: an environment variable; parts: the default, where there is one
    option     name: the dest of a command line option; parts: its default, where there is one
    namespace  what ``parse_args()`` returns
    parameter  name: a parameter nobody in the program fills; parts: its default
    spawn      the process index that ``torch.multiprocessing.spawn`` passes
    iterate    parts: what a loop runs over
    call       name: dotted; parts, keywords: what is passed
    method     name: the attribute; parts: the receiver, then what is passed
    attribute  name; parts: the base
    item       parts: the base, the index
    binary     name: ``+ - * / // % ...``; parts: both sides
    compare    name: ``== != < <= > >= in not-in is is-not``; parts: both sides
    not, and, or   parts
    format     parts: the pieces of an f-string, ``%``, ``.format`` or ``+`` of strings
    tuple      parts
    dict       keywords
    either     parts: what it may be, one on each path
    when       literal: whether the test holds; parts: the test, the value
    unknown
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    # Whether an environment variable is set where the program runs; None: not known.
    Present = Callable[[str], bool | None]

# Larger trees say nothing a rule could use, and shared parts would make them exponential.
LARGEST = 120


class Value(NamedTuple):
    """One expression; see the module's docstring."""

    kind: str
    name: str = ""
    literal: object = None
    parts: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    size: int = 1

    @property
    def is_constant(self) -> bool:
        return self.kind == "constant"

    @property
    def default(self) -> Value | None:
        """The default of an env, option or parameter."""
        return self.parts[0] if self.parts and self.kind in ("env", "option", "parameter") else None

    def keyword(self, name: str) -> Value | None:
        return next((value for key, value in self.keywords if key == name), None)


UNKNOWN = Value("unknown")
NONE = Value("constant")


def make(
    kind: str,
    name: str = "",
    parts: tuple[Value, ...] = (),
    keywords: tuple[tuple[str, Value], ...] = (),
    literal: object = None,
) -> Value:
    """A Value, or UNKNOWN if it were too large."""
    size = 1 + sum(part.size for part in parts) + sum(value.size for _, value in keywords)
    return UNKNOWN if size > LARGEST else Value(kind, name, literal, parts, keywords, size)


def constant(literal: object) -> Value:
    return Value("constant", literal=literal)


def either(values: list[Value]) -> Value:
    """One of these: flat, each once."""
    flat: dict[Value, None] = {}
    for value in values:
        for part in value.parts if value.kind == "either" else (value,):
            flat.setdefault(part)
    if not flat:
        return UNKNOWN
    return next(iter(flat)) if len(flat) == 1 else make("either", parts=tuple(flat))


def joined(pieces: list[Value]) -> Value:
    """A string made of pieces; a constant where all are."""
    flat: list[Value] = []
    for piece in pieces:
        for part in piece.parts if piece.kind == "format" else (piece,):
            if part.is_constant and flat and flat[-1].is_constant:
                flat[-1] = constant(f"{flat[-1].literal}{part.literal}")
            else:
                flat.append(constant(str(part.literal)) if part.is_constant else part)
    if not flat:
        return constant("")
    return flat[0] if len(flat) == 1 and flat[0].is_constant else make("format", parts=tuple(flat))


def walk(value: Value) -> Iterator[Value]:
    """The value and everything inside it."""
    yield value
    for part in value.parts:
        yield from walk(part)
    for _, part in value.keywords:
        yield from walk(part)


_KEEPS = frozenset(
    {"split", "strip", "lstrip", "rstrip", "replace", "rsplit", "partition", "lower"}
)


def comes_from(value: Value, variables: frozenset[str]) -> str:
    """Which of some environment variables a text was cut out of; "" if none."""
    kind = value.kind
    if kind == "env":
        return value.name if value.name in variables else ""
    if kind == "method" and value.name not in _KEEPS:
        return ""
    if kind in ("method", "item", "iterate"):
        return comes_from(value.parts[0], variables)
    if kind in ("either", "or", "when", "list"):
        return next((found for part in value.parts if (found := comes_from(part, variables))), "")
    return ""


def unset(_: str) -> bool | None:
    """Nothing is known of the environment."""
    return None


def alternatives(value: Value, present: Present = unset) -> Iterator[Value]:
    """What the value may be, less what the environment excludes; defaults are followed."""
    if value.kind == "either":
        for part in value.parts:
            yield from alternatives(part, present)
    elif value.kind == "when":
        if truth(value.parts[0], present) in (None, value.literal):
            yield from alternatives(value.parts[1], present)
    elif value.kind == "or":
        for part in value.parts:
            is_true = truth(part, present)
            if is_true is not False:
                yield from alternatives(part, present)
            if is_true:
                return
    elif value.kind == "env":
        is_set = present(value.name)
        if is_set is not False or not value.parts:
            yield value
        if is_set is not True and value.parts:
            yield from alternatives(value.parts[0], present)
    else:
        yield value


_TRUE_CALLS = (
    "torch.cuda.is_available",
    "torch.distributed.is_available",
    "torch.distributed.is_nccl_available",
)


def truth(value: Value, present: Present = unset) -> bool | None:
    """Whether a condition holds; None where that isn't known.

    A job of this kind has GPUs: ``torch.cuda.is_available()`` holds.
    """
    kind, parts = value.kind, value.parts
    if kind == "constant":
        return bool(value.literal)
    if kind == "not":
        inner = truth(parts[0], present)
        return None if inner is None else not inner
    if kind in ("and", "or"):
        sides = [truth(part, present) for part in parts]
        decisive = kind == "or"
        if decisive in sides:
            return decisive
        return None if None in sides else not decisive
    if kind == "call":
        return True if value.name in _TRUE_CALLS else None
    if kind == "env":
        is_set = present(value.name)
        if is_set is False:
            return truth(parts[0], present) if parts else False
        return None
    if kind == "either":
        answers = {truth(part, present) for part in alternatives(value, present)}
        return answers.pop() if len(answers) == 1 else None
    if kind == "compare":
        return _compared(value, present)
    return None


def _compared(value: Value, present: Present) -> bool | None:
    left, right = value.parts
    name = value.name
    if name in ("in", "not-in"):
        if left.is_constant and right == Value("name", "os.environ"):
            is_set = present(str(left.literal))
            return None if is_set is None else is_set == (name == "in")
        return None
    if left == Value("name", "__name__") and right.is_constant:
        return (right.literal == "__main__") == (name == "==")
    sides = [list(alternatives(side, present)) for side in (left, right)]
    if any(len(side) != 1 for side in sides):
        return None
    left, right = sides[0][0], sides[1][0]
    if left.kind == "env" and right == NONE and name in ("is", "is-not", "==", "!="):
        is_set = present(left.name)
        return None if is_set is None else is_set == (name in ("is-not", "!="))
    if not (left.is_constant and right.is_constant):
        return None
    return _constants(name, left.literal, right.literal)


def _constants(name: str, left: object, right: object) -> bool | None:
    if name in ("==", "is"):
        return left == right
    if name in ("!=", "is-not"):
        return left != right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        if name in ("<", "<="):
            return left < right or (name == "<=" and left == right)
        return left > right or (name == ">=" and left == right)
    return None
