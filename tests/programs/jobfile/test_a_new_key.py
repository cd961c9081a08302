"""A key that is added as CONTRIBUTING.md says goes every way that a key goes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COPIED = (
    *("slurmgen", "templates", "configs", "docs/reference", "pyproject.toml", "tests/conftest.py"),
    *("tests/unit/jobfile", "tests/property/test_quick.py", "tests/golden/jobs", "tests/docs"),
)
ROW = """\
    "wckey": Key(
        kinds.IDENTIFIER, "what the job is charged as, --wckey", ("thesis",), group=_WHO
    ),
"""
FIELD = '    wckey: f.Identifier | None = given(KEYS["wckey"])\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in COPIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def put_before(path: Path, line: str, text: str) -> None:
    before, found, after = path.read_text(encoding="utf-8").partition(line)
    assert found
    path.write_text(before + text + found + after, encoding="utf-8")


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Neither this session's pytest options nor its worker are the other's.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=tree,
        env={**env, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_a_row_and_a_field_are_all_it_takes(tree: Path) -> None:
    put_before(tree / "slurmgen/jobfile/keys.py", '    "partition": Key(\n', ROW)
    put_before(tree / "slurmgen/jobfile/job.py", "    partition: f.NameList", FIELD)
    written = run(tree, "tests/docs/test_reference.py", "--update-golden")
    assert written.returncode == 0, written.stdout
    tests = ("tests/unit/jobfile/test_keys.py", "tests/unit/jobfile/test_schema.py")
    told = run(tree, *tests, "-k", "wckey or order or every_key_says or what_has_no_option")
    assert told.returncode == 0, told.stdout
    assert "### wckey" in (tree / "docs/reference/job-file.md").read_text(encoding="utf-8")


def test_a_row_without_its_field_is_noticed(tree: Path) -> None:
    put_before(tree / "slurmgen/jobfile/keys.py", '    "partition": Key(\n', ROW)
    told = run(tree, "tests/unit/jobfile/test_keys.py", "-k", "order or wckey")
    assert told.returncode == 1, told.stdout
    assert "test_the_models_have_these_keys_in_this_order" in told.stdout
