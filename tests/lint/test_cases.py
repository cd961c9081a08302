"""Whole scripts: each names its one fault, or has none.

A case is a folder with `job.sbatch`, the programs it starts, and `case.yaml`. `slurm` and
`cluster` (a profile) are what is known of the cluster; without them nothing is.

cases, variants: `root_cause` and `lines` (file to the lines on which that rule may point), or
`clean: true`; cases come from public reports of bugs, variants are the same faults in another
dress, and scripts that only look like one. public: scripts in the manner of public repositories,
with all that is found in them as `findings`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from slurmgen.cluster.load import load_profile
from slurmgen.lint import engine, registry
from slurmgen.lint.job import load

if TYPE_CHECKING:
    from slurmgen.diagnostics import Diagnostic

HERE = Path(__file__).parent
CASES = [
    path.parent
    for folder in ("cases", "variants", "public")
    for path in sorted((HERE / folder).glob("*/case.yaml"))
]

# name -> why lint can't know it (yet)
KNOWN_EXCEPTIONS = {
    "f231-if-branch-no-srun": "the other branch starts the same program with srun",
}


def lint(case: Path, facts: dict[str, Any], tmp_path: Path) -> tuple[Diagnostic, ...]:
    profile = None
    if "cluster" in facts:
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(facts["cluster"]))
        profile = load_profile(str(tmp_path / "cluster.yaml"), tmp_path)
    script = case / "job.sbatch"
    text = script.read_bytes().decode()
    job = load(str(script), text, slurm=facts.get("slurm"), profile=profile, folder=case)
    outcome = engine.check(job, registry.rules())
    for failure in outcome.failures:
        raise failure.error
    return outcome.diagnostics


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_script_and_its_fault(case: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if case.name in KNOWN_EXCEPTIONS:
        request.applymarker(pytest.mark.xfail(reason=KNOWN_EXCEPTIONS[case.name]))
    facts = yaml.safe_load((case / "case.yaml").read_text())
    found = lint(case, facts, tmp_path)
    shown = [f"{d.location.line}: {d.rule}: {d.message}" for d in found]
    if facts.get("clean"):
        assert shown == []
        return
    if "findings" in facts:
        wanted = {(one["rule"], one["line"]) for one in facts["findings"]}
        assert {(d.rule, d.location.line) for d in found} == wanted, shown
        return
    places = {
        (Path(d.location.path).name, d.location.line)
        for d in found
        if d.rule == facts["root_cause"]
    }
    wanted = {(name, line) for name, lines in facts["lines"].items() for line in lines}
    assert places & wanted, shown
