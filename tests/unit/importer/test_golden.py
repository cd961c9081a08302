"""Scripts of many styles: the job file of each, the notes on it, and the script it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.importer import import_script
from slurmgen.jobfile.source import parse_yaml
from slurmgen.script.pipeline import plan_job, render_job
from tests.golden.scripts import expected

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parents[2] / "golden" / "imports"
CASES = sorted(path.parent for path in HERE.glob("*/job.sbatch"))
assert len(CASES) > 24


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_job_file_of_a_script(case: Path, golden: Callable[[Path, str], None]) -> None:
    text = (case / "job.sbatch").read_bytes().decode()
    imported = import_script(text, name="job.sbatch")
    golden(case / "job.yaml", imported.text)
    notes = "".join(f"{note.line}: {note.text}\n" for note in imported.notes)
    golden(case / "notes.txt", notes)
    script = render_job(plan_job(str(case / "job.yaml")))
    golden(case / "rendered.sbatch", expected(script, whole=False))
    again = import_script(script, name="job.sbatch")
    assert parse_yaml(again.text, "again").data == parse_yaml(imported.text, "first").data
