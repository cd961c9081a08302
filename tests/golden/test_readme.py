"""What README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.cli.report import format_text
from slurmgen.cluster import generic
from slurmgen.jobfile.load import load_job
from slurmgen.lint import engine, registry
from slurmgen.lint.job import load
from slurmgen.script.picture import draw
from slurmgen.script.plan import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_job_file_and_its_picture(golden: Callable[[Path, str], None]) -> None:
    loaded = load_job(blocks("yaml")[0], "job.yaml")
    golden(ROOT / "docs" / "plan.svg", draw(resolve(loaded.spec, generic.PROFILE)))


def test_what_lint_says_of_the_script(tmp_path: Path) -> None:
    text = blocks("bash")[0]
    outcome = engine.check(load("train.sbatch", text, folder=tmp_path), registry.rules())
    assert format_text(outcome.diagnostics, outcome.texts) + "\n" == blocks("text")[0]


def test_every_path_it_names_is_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
