"""What `make quick` promises is held: no process, no torch, no connection."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
WRONG = {
    "import subprocess; subprocess.run(['true'])": "starts a process",
    "import os; os._exit(0) if os.fork() == 0 else os.wait()": "starts a process",
    "import socket; socket.create_connection(('127.0.0.1', 9))": "connects",
    "import torch": "loads torch",
}


def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.quick", "-p", "no:cacheprovider", "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("code", WRONG)
def test_it_fails_and_says_why(code: str, tmp_path: Path) -> None:
    hidden = f"def test_it():\n  try:\n    {code}\n  except BaseException:\n    pass\n"
    done = run(hidden, tmp_path)
    assert done.returncode == 1, done.stdout
    assert WRONG[code] in done.stdout


def test_also_while_tests_are_loaded(tmp_path: Path) -> None:
    done = run("import torch\ndef test_it(): pass\n", tmp_path)
    assert done.returncode != 0
    assert "loads torch" in done.stdout


def test_everything_else_passes(tmp_path: Path) -> None:
    done = run("import json\ndef test_it(tmp_path): assert json.loads('1') == 1\n", tmp_path)
    assert done.returncode == 0, done.stdout
