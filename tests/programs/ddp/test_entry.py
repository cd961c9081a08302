"""Launches that are refused before torch is imported: here torch can't be imported at all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Recorded = Callable[[str], dict[str, str]]

ROOT = Path(__file__).parents[3]


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., str]:
    """`refused(env, *arguments)`: stderr of an entrypoint that ended with 78."""
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')\n")
    (tmp_path / "train.py").touch()

    def run(env: dict[str, str], *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "slurmgen.ddp", *arguments],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}", **env},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 78, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr

    return run


def test_what_is_wrong_is_said_with_why_and_fix(
    refused: Callable[..., str], recorded: Recorded
) -> None:
    step = {**recorded("stepenv.5"), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "12345"}
    error = refused({**step, "SLURMGEN_WORLD_SIZE": "16"}, "train.py")
    first, why, fix = error.splitlines()
    assert re.match(r"slurmgen\.ddp [-\d]+ [:\d]+ rank 5: error: the world size is 8, but", first)
    assert why.startswith("  = why: ")
    assert fix.startswith("  = fix: ")

    assert "not started by srun" in refused(recorded("batchenv"), "train.py")
    nowhere = {**step, "MASTER_ADDR": "no-such-node.invalid"}
    assert "MASTER_ADDR=no-such-node.invalid doesn't resolve" in refused(nowhere, "train.py")
    assert "there is no script absent.py" in refused(step, "absent.py")
    assert "usage: python -m slurmgen.ddp" in refused(step)


def test_the_spawn_launcher_says_it_once(refused: Callable[..., str]) -> None:
    env = {
        "SLURMGEN_LAUNCHER": "spawn",
        "SLURMGEN_WORLD_SIZE": "4",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "12345",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "NODE_RANK": "0",
    }
    assert refused(env, "train.py").count("the world size is 2") == 1


def test_help(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "slurmgen.ddp", "--help"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: python -m slurmgen.ddp TARGET")
