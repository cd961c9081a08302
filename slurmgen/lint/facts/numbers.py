"""Whole numbers that a word comes to inside the job: `$SLURM_NNODES`, `$((SLURM_NNODES * 4))`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from slurmgen.reading.shell.words import ARITHMETIC, COMMAND, TEXT, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.reading.shell.variables import Assignment
    from slurmgen.reading.shell.words import Word
    from slurmgen.slurm.request import Request

_DEEPEST = 8
_LONGEST = 200
_RUN_TOGETHER = re.compile(r"(?<!\w)\d+[^\W\d]|\d\.[^\d\s]")
_DIGITS = re.compile(r"[+-]?\d{1,12}")
_BRACES = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_DOLLAR_PARENTHESES = re.compile(r"\$\(\((.*)\)\)", re.DOTALL)
_COUNT_GPUS = re.compile(r"nvidia-smi\s+(-L|--list-gpus|--query-gpu=\w+\s+--format=csv,noheader)")


def number(
    word: Word, variables: Mapping[str, Assignment], request: Request, depth: int = 0
) -> int | None:
    """The number, or None where it is none or cannot be known."""
    if depth > _DEEPEST:
        return None
    if len(word.pieces) == 1 and word.pieces[0].kind != TEXT:
        piece = word.pieces[0]
        if piece.kind == VARIABLE:
            if not piece.operator:
                return of_slurm(piece.name, request)
            known = of_slurm(piece.name, request)
            if known is None and piece.default is not None and not is_slurm(piece.name):
                return _literal(piece.default)
            return known if piece.operator.startswith(":") else None
        if piece.kind == ARITHMETIC:
            inner = _DOLLAR_PARENTHESES.fullmatch(piece.text)
            return calculate(inner[1], variables, request, depth) if inner else None
        if piece.kind == COMMAND and _COUNT_GPUS.search(piece.text) and "wc -l" in piece.text:
            return request.node_gpus
        return None
    literal = word.literal
    return None if literal is None else _literal(literal)


def _literal(text: str) -> int | None:
    return int(text) if text.isascii() and _DIGITS.fullmatch(text) else None


def is_slurm(name: str) -> bool:
    """Whether Slurm sets a variable of that name."""
    return name.startswith("SLURM_")


def of_slurm(name: str, request: Request) -> int | None:
    """The number that Slurm puts into the variable `name` in the batch shell."""
    if name in ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"):
        return request.total_nodes
    if name in ("SLURM_NTASKS", "SLURM_NPROCS"):
        return request.total_tasks
    if name == "SLURM_NTASKS_PER_NODE":
        return request.ntasks_per_node
    if name == "SLURM_CPUS_PER_TASK":
        return request.cpus_per_task
    if name == "SLURM_GPUS_ON_NODE":
        return request.node_gpus
    if name == "SLURM_GPUS_PER_NODE":
        return request.gpus_per_node if request.directive("gpus-per-node") else None
    return None


def parse(expression: str) -> ast.expr | None:
    """Arithmetic of Bash, its `$` taken off, as Python reads it; None where it can't."""
    # Python warns on the terminal of a number that runs into a word.
    if len(expression) > _LONGEST or _RUN_TOGETHER.search(expression):
        return None
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def calculate(
    expression: str, variables: Mapping[str, Assignment], request: Request, depth: int = 0
) -> int | None:
    """What Bash makes of the inside of `$(( … ))`."""
    if len(expression) > _LONGEST or depth > _DEEPEST:
        return None
    plain = _BRACES.sub(lambda found: found[1] or found[2], expression).strip()
    tree = parse(plain)
    if tree is None:
        return None

    def of(node: ast.expr) -> int | None:
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, ast.Name):
            assigned = variables.get(node.id)
            if assigned is not None:
                return number(assigned.value, variables, request, depth + 1)
            return of_slurm(node.id, request)
        if isinstance(node, ast.BinOp):
            left, right = of(node.left), of(node.right)
            if left is None or right is None:
                return None
            return _operate(node.op, left, right)
        return None

    return of(tree)


def _operate(operator: ast.operator, left: int, right: int) -> int | None:
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.Div) and right:
        return int(left / right)
    if isinstance(operator, ast.Mod) and right:
        return left % right
    return None
