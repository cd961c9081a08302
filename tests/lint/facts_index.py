"""slurmgen/lint/facts/README.md: what a rule may ask, from the docstrings of what it asks."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.lint import facts

if TYPE_CHECKING:
    from collections.abc import Iterator

LINT = Path(facts.__path__[0]).parent
PAGE = LINT / "facts" / "README.md"

_PREFACE = """\
# What a rule may ask

Written by `make docs` from the first lines of docstrings; what is here needn't be worked out in a
rule. Below the `Job` come the modules of `slurmgen/lint/facts/`, a table for each subject; a name
such as `Run.place` is asked of an answer. What a launch, a word or a program knows of itself is in
`slurmgen/reading/`, what a request knows in `slurmgen/slurm/request.py`.
"""


def page() -> str:
    """The whole page."""
    modules = [module for module in sorted(LINT.glob("facts/*.py")) if module.stem != "__init__"]
    parts = [_PREFACE, *map(_section, [LINT / "job.py", *modules])]
    return "\n".join(part for part in parts if part)


def _section(path: Path) -> str:
    """The table of a module; empty for one that answers nothing."""
    module = ast.parse(path.read_text("utf-8"))
    rows = [
        f"| {_escaped(_first_line(found))} | `{name}` | {_answer(found)} |\n"
        for name, found in _questions(module)
    ]
    if not rows:
        return ""
    name = path.relative_to(LINT).as_posix()
    head = "| question | asked as | answer |\n|---|---|---|\n"
    return f"## {name}\n\n{_first_line(module)}\n\n{head}{''.join(rows)}"


def _questions(module: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Public functions, and public methods of public classes, with their parameters' names."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield _asked(node), node
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    yield f"{node.name}.{_asked(method)}", method


def _asked(function: ast.FunctionDef) -> str:
    if any(
        isinstance(name, ast.Name) and name.id == "property" for name in function.decorator_list
    ):
        return function.name
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    if given.vararg is not None:
        names.append(f"*{given.vararg.arg}")
    return f"{function.name}({', '.join(name for name in names if name != 'self')})"


def _answer(function: ast.FunctionDef) -> str:
    assert function.returns is not None, f"{function.name} doesn't say what it returns"
    return f"`{_escaped(ast.unparse(function.returns))}`"


def _first_line(node: ast.Module | ast.FunctionDef) -> str:
    text = ast.get_docstring(node)
    assert text, f"{getattr(node, 'name', 'a module')} has no docstring for its line"
    return text.partition("\n")[0]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
