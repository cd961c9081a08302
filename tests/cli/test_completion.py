"""What Bash itself is offered: verbs, job files, clusters, templates, rules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def offered(folder: Path, *words: str) -> set[str]:
    """COMPREPLY of a real Bash, with the last word half typed."""
    bin_ = folder / "bin"
    bin_.mkdir(exist_ok=True)
    program = bin_ / "slurmgen"
    program.write_text(f'#!/bin/bash\nexec {sys.executable} -m slurmgen "$@"\n')
    program.chmod(0o755)
    line = " ".join(f"'{word}'" for word in ("slurmgen", *words))
    script = (
        'eval "$(slurmgen --show-completion bash)"\n'
        f"COMP_WORDS=({line}); COMP_CWORD={len(words)}\n"
        "_slurmgen_completion slurmgen\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    path = f"{bin_}:{os.environ['PATH']}"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, "SHELL": "/bin/bash"}
    env["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_values_are_offered(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    for name in ("job.yaml", "notes.txt", "clusters/here.yaml", "templates/mine.sbatch.j2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert {"render", "run"} <= offered(tmp_path, "r")
    assert offered(tmp_path, "render", "jo") == {"job.yaml"}
    assert offered(tmp_path, "plan", "no") == set()
    assert offered(tmp_path, "render", "--cluster", "he") == {"here"}
    assert "mine" in offered(tmp_path, "template", "show", "m")
    assert offered(tmp_path, "lint", "--explain", "time-in") == {"time-in-minutes"}
