"""The index of what a rule may ask is true and whole; `make docs` writes it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from typing import TYPE_CHECKING

from slurmgen.lint import facts
from tests.lint import facts_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType


def test_the_index_is_up_to_date(golden: Callable[[Path, str], None]) -> None:
    golden(facts_index.PAGE, facts_index.page())


def test_every_question_is_in_the_index_once() -> None:
    """Counted by importing the modules, where the page is written from their text."""
    there = Counter(
        f"{module.name}.py {name}"
        for module in pkgutil.iter_modules(facts.__path__)
        for name in _names(importlib.import_module(f"{facts.__name__}.{module.name}"))
    )
    said = Counter[str]()
    for section in facts_index.PAGE.read_text("utf-8").split("\n## facts/")[1:]:
        module = section.partition("\n")[0]
        said.update(f"{module} {name}" for name in re.findall(r"\| `([\w.]+)[^`]*` \|", section))
    assert said == there


def _names(module: ModuleType) -> Iterator[str]:
    """The public functions of a module, and the methods of its public classes."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value):
            methods = {k: v for k, v in vars(value).items() if not k.startswith("_")}
            yield from (
                f"{name}.{method}"
                for method, found in methods.items()
                if isinstance(found, property) or inspect.isfunction(found)
            )
        elif callable(value):
            yield name
