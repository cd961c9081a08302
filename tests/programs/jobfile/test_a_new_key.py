"""A key that is added as CONTRIBUTING.md says goes every way that a key goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.copied import copy, put_before, run_tests

if TYPE_CHECKING:
    from pathlib import Path

COPIED = (
    *("docs/reference", "tests/unit/jobfile", "tests/property/test_without_pydantic.py"),
    *("tests/golden/jobs", "tests/docs"),
)
ROW = """\
    "wckey": Key(
        kinds.IDENTIFIER, "what the job is charged as, --wckey", ("thesis",), group=_WHO
    ),
"""
FIELD = '    wckey: f.Identifier | None = given(KEYS["wckey"])\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return copy(tmp_path, *COPIED)


def test_a_row_and_a_field_are_all_it_takes(tree: Path) -> None:
    put_before(tree / "slurmgen/jobfile/keys.py", '    "partition": Key(\n', ROW)
    put_before(tree / "slurmgen/jobfile/model.py", "    partition: f.NameList", FIELD)
    written = run_tests(tree, "tests/docs/test_reference.py", "--update-golden")
    assert written.returncode == 0, written.stdout
    tests = ("tests/unit/jobfile/test_keys.py", "tests/unit/jobfile/test_schema.py")
    told = run_tests(tree, *tests, "-k", "wckey or order or every_key_says or what_has_no_option")
    assert told.returncode == 0, told.stdout
    assert "### wckey" in (tree / "docs/reference/job-file.md").read_text(encoding="utf-8")


def test_a_row_without_its_field_is_noticed(tree: Path) -> None:
    put_before(tree / "slurmgen/jobfile/keys.py", '    "partition": Key(\n', ROW)
    told = run_tests(tree, "tests/unit/jobfile/test_keys.py", "-k", "order or wckey")
    assert told.returncode == 1, told.stdout
    assert "test_the_models_have_these_keys_in_this_order" in told.stdout
