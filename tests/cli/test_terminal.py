"""What a stranger's file says reaches the terminal as text: no escape sequences."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import pytest

from slurmgen.cli import main

if TYPE_CHECKING:
    from pathlib import Path

ESCAPES = "\x1b]0;title\x07\x1b[31m\x9b2J"
JOB = "nodes: 1\njob_name: j\ncommand: [python, train.py]\n"
SCRIPT = (
    f'#!/bin/bash\n#SBATCH --job-name="{ESCAPES}" --no{ESCAPES}=1\nsrun python "{ESCAPES}.py"\n'
)
# Only "\\e" in double quotes, since YAML takes no control character as it is.
PROFILE = """\
site: "\\e[31m site \\x9b2J"
notes: [{text: "\\e]0;title\\a"}]
verified: false
verified_note: "\\e[31m"
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["lint", f"{ESCAPES}.sbatch"],
        ["lint", "--format", "github", f"{ESCAPES}.sbatch"],
        ["import", f"{ESCAPES}.sbatch"],
        ["plan", f"{ESCAPES}.yaml"],
        ["plan", "-c", "strange", "job.yaml"],
        ["cluster", "show", "strange"],
        ["cluster", "list"],
        ["render", "-c", ESCAPES, "job.yaml"],
        ["render", f"no{ESCAPES}.yaml"],
        ["render", "--set", f"nodes={ESCAPES}", "job.yaml"],
        ["render", "--set", f"{ESCAPES}=1", "job.yaml"],
    ],
)
def test_no_escape_sequence_reaches_the_terminal(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clusters").mkdir()
    (tmp_path / "clusters" / "strange.yaml").write_text(PROFILE)
    for name in ("job", ESCAPES):
        (tmp_path / f"{name}.yaml").write_text(JOB)
    (tmp_path / f"{ESCAPES}.sbatch").write_text(SCRIPT)
    monkeypatch.setattr(sys, "argv", ["slurmgen", *arguments])
    with pytest.raises(SystemExit) as caught:
        main.main()
    gc.enable()
    shown = capfdbinary.readouterr()
    assert caught.value.code in (0, 1, 2, 3), shown.err
    printed = (shown.out + shown.err).decode()
    assert printed
    if "strange" in arguments:
        assert caught.value.code == 0
    assert not set(printed) & set("\x1b\x07\x9b")
