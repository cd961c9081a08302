"""Every claim of the pages about Slurm has a test that shows it, or a reason why none does."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from slurmgen.lint import registry
from tests.docs import pages
from tests.docs.claims import CLAIMS, RULES, WITHOUT, Reason

if TYPE_CHECKING:
    from pathlib import Path

TESTS = pages.ROOT / "tests"
# Slurm's releases are called by year and month.
VERSION = re.compile(r"\b2\d\.(?:02|05|08|11)\b")


def prose(page: str) -> str:
    """A page without its blocks, on one line."""
    path = pages.ROOT / page if page == "README.md" else pages.DOCS / page
    text = re.sub(r"^ *```.*?^ *```$", "", path.read_text("utf-8"), flags=re.M | re.S)
    return " ".join(text.split())


@cache
def module(path: Path) -> tuple[set[str], set[str]]:
    """The tests of a file, and all texts in it."""
    tree = ast.parse(path.read_text("utf-8"))
    tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return tests, {value for value in constants if isinstance(value, str)}


def named() -> list[str]:
    """Every test of the tables, once."""
    shown = [*RULES.values(), *(by for page in CLAIMS.values() for by in page.values())]
    tests = [by for by in shown if not isinstance(by, Reason)]
    return sorted({test for by in tests for test in ([by] if isinstance(by, str) else by)})


def test_every_page_is_looked_through() -> None:
    names = [pages.name_of(page) for page in pages.written()]
    assert sorted([*CLAIMS, *WITHOUT]) == sorted(["README.md", *names])


def test_every_rule_is_looked_through() -> None:
    assert sorted(RULES) == sorted(rule.name for rule in registry.rules())


@pytest.mark.parametrize("page", CLAIMS)
def test_a_sentence_stands_in_its_page(page: str) -> None:
    text = prose(page)
    assert [part for part in CLAIMS[page] if part not in text] == []


@pytest.mark.parametrize("test", named())
def test_what_shows_it_is_there(test: str) -> None:
    name, _, function = test.partition("::")
    function, _, case = function.removesuffix("]").partition("[")
    tests, texts = module(TESTS / name)
    assert function in tests
    assert not case or case in texts


@pytest.mark.parametrize("page", ["README.md", *map(pages.name_of, pages.written())])
def test_what_holds_on_a_version_is_claimed(page: str) -> None:
    text = prose(page)
    for part in CLAIMS.get(page, ()):
        text = text.replace(part, "")
    assert VERSION.findall(text) == []
