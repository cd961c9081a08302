"""Which whole numbers a word of the script can come to: `$((20000 + SLURM_JOB_ID % 10000))`.

numbers.py knows the one number a word is; here it is enough to know how low and how high.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.lint.facts.numbers import parse
from slurmgen.reading.shell.words import ARITHMETIC, COMMAND, TEXT, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.reading.programs import Value
    from slurmgen.reading.shell.variables import Assignment
    from slurmgen.reading.shell.words import Piece, Word
    from slurmgen.slurm.request import Request

_DEEPEST = 6
_LONGEST = 400
# The highest job id (MaxJobId, slurm.conf(5)), pid (pid_max on 64 bits) and user id.
_JOB_IDS = (1, 67_043_328)
_PIDS = (1, 4_194_304)
_USER_IDS = (0, 4_294_967_294)


class Range(NamedTuple):
    """From low to high; digits: with how many digits it is written, where that is fixed."""

    low: int
    high: int
    digits: int | None = None

    @property
    def is_constant(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high


class Ranges:
    """The ranges of words, in a job that asks for `request`."""

    def __init__(self, variables: Mapping[str, Assignment], request: Request) -> None:
        self._variables = variables
        self._request = request

    def of(self, word: Word, depth: int = 0) -> Range | None:
        """The range of a word; None where it can't be known."""
        if depth > _DEEPEST or not word.pieces:
            return None
        found: Range | None = None
        for piece in word.pieces:
            part = self._piece(piece, depth)
            if part is None:
                return None
            found = part if found is None else _side_by_side(found, part)
        return found

    def _piece(self, piece: Piece, depth: int) -> Range | None:
        if piece.kind == TEXT:
            return _number(piece.text.strip())
        if piece.kind == VARIABLE:
            return self._variable(piece.name, piece.operator, piece.value, depth)
        if piece.kind == ARITHMETIC:
            inner = piece.text.removeprefix("$((").removesuffix("))")
            return self.calculate(inner, depth + 1)
        return self._command(piece.text, depth) if piece.kind == COMMAND else None

    def _variable(self, name: str, operator: str, value: Word | None, depth: int) -> Range | None:
        whole = self.of(value, depth + 1) if value is not None else self._named(name, depth)
        if not operator:
            return whole
        if operator.startswith((":-", ":=", "-", "=")):
            default = _number(operator.lstrip(":-=").strip("\"'"))
            return default if value is None and not name.startswith("SLURM") else whole
        last = _LAST_DIGITS.fullmatch(operator)
        if last is not None and whole is not None:
            return _last_digits(int(last[1]))
        return None

    def _named(self, name: str, depth: int) -> Range | None:
        assigned = self._variables.get(name)
        if assigned is not None and name not in ("RANDOM", "SECONDS"):
            return self.of(assigned.value, depth + 1)
        if name in ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID"):
            return Range(*_JOB_IDS)
        if name == "RANDOM":
            return Range(0, 32767)
        if name in ("$", "BASHPID"):
            return Range(*_PIDS)
        if name in ("UID", "EUID", "SLURM_JOB_UID"):
            return Range(*_USER_IDS)
        if name == "SLURM_ARRAY_TASK_ID":
            numbers = [int(n) for n in re.findall(r"(?<![%:\d])\d+", self._request.array or "")]
            return Range(min(numbers), max(numbers)) if numbers else None
        if name in ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"):
            return Range(0, max(0, (self._request.total_tasks or 1) - 1))
        return None

    def _command(self, text: str, depth: int) -> Range | None:
        """What a few well-known commands print."""
        inner = text.removeprefix("$(").removesuffix(")").strip("`").strip()
        shuffled = _SHUF.search(inner)
        if shuffled is not None:
            return Range(int(shuffled[1]), int(shuffled[2]))
        drawn = _SEQ.search(inner)
        if drawn is not None and re.search(r"\b(shuf|sort\s+-R)\b", inner):
            return Range(int(drawn[1] or drawn[3]), int(drawn[2] or drawn[4]))
        last = _TAIL.fullmatch(inner)
        if last is not None:
            # echo's line end is one of the characters that tail counts.
            count = int(last["count"]) - (1 if last["line"] else 0)
            return _last_digits(count) if count > 0 else None
        if inner.startswith("expr "):
            return self.calculate(inner[5:].replace("\\*", "*"), depth + 1)
        through_bc = _BC.fullmatch(inner)
        if through_bc is not None:
            return self.calculate(through_bc[1], depth + 1)
        if inner in ("id -u", "id -ru"):
            return Range(*_USER_IDS)
        return None

    def calculate(self, expression: str, depth: int = 0) -> Range | None:
        """The range of what stands inside `$(( … ))`."""
        if depth > _DEEPEST or len(expression) > _LONGEST:
            return None
        parts: dict[str, Range | None] = {}
        plain = self._without_expansions(expression, parts, depth)
        tree = parse(plain.strip().strip("\"'"))
        if tree is None:
            return None

        def of(node: ast.expr) -> Range | None:
            if isinstance(node, ast.Constant):
                return Range(node.value, node.value) if type(node.value) is int else None
            if isinstance(node, ast.Name):
                if node.id in parts:
                    return parts[node.id]
                return self._named(node.id, depth)
            if isinstance(node, ast.BinOp):
                left, right = of(node.left), of(node.right)
                if left is None or right is None:
                    return None
                return _operate(node.op, left, right)
            return None

        return of(tree)

    def _without_expansions(self, text: str, parts: dict[str, Range | None], depth: int) -> str:
        """The expression with a name in the place of each expansion, `10#` taken off."""
        out = []
        at = 0
        text = text.replace("10#", "")
        while at < len(text):
            end, inner = expansion_at(text, at)
            if end is None:
                out.append(text[at])
                at += 1
                continue
            name = f"_{len(parts)}_"
            parts[name] = self._source(inner, depth)
            out.append(name)
            at = end
        return "".join(out)

    def _source(self, source: str, depth: int) -> Range | None:
        if source.startswith("$(("):
            return self.calculate(source[3:-2], depth + 1)
        if source.startswith(("$(", "`")):
            return self._command(source, depth + 1)
        inner = source[2:-1] if source.startswith("${") else source[1:]
        found = re.match(r"\w+|\$", inner)
        if found is None:
            return None
        return self._variable(found[0], inner[found.end() :], None, depth + 1)


_LAST_DIGITS = re.compile(r":\s*\(?\s*-(\d{1,2})\s*\)?(?::\d+)?")
_SHUF = re.compile(r"\bshuf\b[^|;]*?(?:-i\s*|--input-range[= ])(\d{1,9})-(\d{1,9})")
_SEQ = re.compile(r"\bseq\s+(\d{1,9})\s+(\d{1,9})\b|\{(\d{1,9})\.\.(\d{1,9})\}")
_JOB = r"[\"']?\$\{?(?:SLURM_JOB_?ID|SLURM_ARRAY_JOB_ID)\}?[\"']?"
_TAIL = re.compile(
    rf"(?:(?P<line>echo)|echo\s+-n|printf\s+[\"']?%s[\"']?)\s+{_JOB}\s*\|\s*"
    r"tail\s+-c\s*(?P<count>\d{1,2})"
)
_BC = re.compile(r"echo\s+[\"']?([^\"'|]+?)[\"']?\s*\|\s*bc(?:\s+-q)?")


def of_value(value: Value) -> Range | None:
    """The range of what a Python program computes from literals and the job's id."""
    literal = value.literal if value.is_constant else None
    if literal is not None and not isinstance(literal, bool):
        return _number(str(literal))
    if value.kind == "env":
        is_id = value.name in ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID")
        return Range(*_JOB_IDS) if is_id else None
    if value.kind == "call" and value.name in ("random.randint", "random.randrange"):
        ends = [of_value(part) for part in value.parts[:2]]
        if len(ends) == 2 and ends[0] is not None and ends[1] is not None:
            return Range(ends[0].low, ends[1].high)
    if value.kind == "binary" and value.name in _OPERATORS:
        left, right = (of_value(part) for part in value.parts)
        if left is not None and right is not None:
            return _operate(_OPERATORS[value.name], left, right)
    return None


_OPERATORS: dict[str, ast.operator] = {
    "+": ast.Add(),
    "-": ast.Sub(),
    "*": ast.Mult(),
    "%": ast.Mod(),
    "//": ast.Div(),
}


def _number(text: str) -> Range | None:
    if not re.fullmatch(r"\d{1,12}", text) or not text.isascii():
        return None
    return Range(int(text), int(text), len(text))


def _last_digits(count: int) -> Range:
    return Range(0, 10**count - 1, count)


def _side_by_side(left: Range, right: Range) -> Range | None:
    """`1$A`: the digits of one behind those of the other."""
    digits = None
    if left.digits is not None and right.digits is not None:
        digits = left.digits + right.digits

    def joined(a: int, b: int) -> int:
        return int(f"{a}{str(b).zfill(right.digits or 1)}")

    low, high = joined(left.low, right.low), joined(left.high, right.high)
    return Range(low, high, digits) if high < 10**15 else None


def _operate(operator: ast.operator, left: Range, right: Range) -> Range | None:
    if isinstance(operator, ast.Add):
        return Range(left.low + right.low, left.high + right.high)
    if isinstance(operator, ast.Sub):
        return Range(left.low - right.high, left.high - right.low)
    if isinstance(operator, ast.Mult):
        ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
        return Range(min(ends), max(ends))
    if not right.is_constant or right.low <= 0 or left.low < 0:
        return None
    if isinstance(operator, ast.Div):
        return Range(left.low // right.low, left.high // right.low)
    if isinstance(operator, ast.Mod):
        if left.high < right.low:
            return left
        return Range(0, right.low - 1)
    return None


def expansion_at(text: str, at: int) -> tuple[int | None, str]:
    """Where the expansion that starts at `at` ends, and how it is written; None: none does."""
    if text[at] == "`":
        end = text.find("`", at + 1)
        return (end + 1, text[at : end + 1]) if end > 0 else (None, "")
    if text[at] != "$":
        return None, ""
    simple = re.compile(r"\$(?:\w+|\$)").match(text, at)
    if simple is not None:
        return simple.end(), simple[0]
    opening = text[at + 1 : at + 2]
    closing = {"{": "}", "(": ")"}.get(opening)
    if closing is None:
        return None, ""
    level = 0
    for index in range(at + 1, len(text)):
        level += (text[index] == opening) - (text[index] == closing)
        if level == 0:
            return index + 1, text[at : index + 1]
    return None, ""
