"""A copy of the project, to which a test adds something as CONTRIBUTING.md says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What slurmgen needs to run, and its tests to start.
_ALWAYS = (
    "slurmgen",
    "templates",
    "configs",
    "pyproject.toml",
    "tests/conftest.py",
    "tests/examples.py",
)


def copy(to: Path, *parts: str) -> Path:
    """Copy the package and what it needs, and these files and folders of the project."""
    for name in (*_ALWAYS, *parts):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, to / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, to / name)
    return to


def put_before(path: Path, line: str, text: str) -> None:
    """Write a text into a file, before the only place of another."""
    whole = path.read_text(encoding="utf-8")
    assert whole.count(line) == 1, f"{path} has {line!r} {whole.count(line)} times"
    path.write_text(whole.replace(line, text + line), encoding="utf-8")


def _run(
    tree: Path, module: str, arguments: tuple[str, ...], cwd: Path
) -> subprocess.CompletedProcess[str]:
    # Neither this session's pytest options nor its worker are the other's.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=cwd,
        env={**env, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )


def run_tests(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run tests of the copy, on the copy."""
    return _run(tree, "pytest", ("-q", "-p", "no:cacheprovider", *arguments), tree)


def slurmgen(tree: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the copy's slurmgen."""
    return _run(tree, "slurmgen", arguments, cwd)
