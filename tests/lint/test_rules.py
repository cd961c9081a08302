"""Every rule by its own documentation: the example is found, its mend is not."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.cluster.load import load_profile
from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint import documentation, engine, registry
from slurmgen.lint.job import load
from slurmgen.lint.rules import RULES

if TYPE_CHECKING:
    from slurmgen.diagnostics import Diagnostic
    from slurmgen.lint.registry import Rule

FOLDER = Path(engine.__file__).parent / "rules"
every_rule = pytest.mark.parametrize("rule", registry.rules(), ids=lambda rule: rule.name)


def test_every_module_is_in_the_list() -> None:
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert set(RULES) == modules
    assert len(RULES) == len(modules)


def test_the_list_is_in_the_order_of_the_codes() -> None:
    assert list(RULES) == [rule.name.replace("-", "_") for rule in registry.rules()]


def test_names_and_codes_are_given_once() -> None:
    known = [key for rule in registry.rules() for key in (rule.name, rule.code)]
    assert [key for key, count in Counter(known).items() if count > 1] == []


def test_no_two_rules_hide_each_other() -> None:
    hides = {rule.name: rule.hides for rule in registry.rules()}

    def below(name: str) -> set[str]:
        found: set[str] = set()
        left = list(hides[name])
        while left:
            other = left.pop()
            if other not in found:
                found.add(other)
                left += hides[other]
        return found

    assert [name for name in hides if name in below(name)] == []


@every_rule
def test_a_rule_is_called_as_its_module_is(rule: Rule) -> None:
    assert rule.check.__module__ == f"slurmgen.lint.rules.{rule.name.replace('-', '_')}"
    assert re.fullmatch(r"SG\d\d\d", rule.code)
    assert rule.code[:3] in documentation.FAMILIES
    assert rule.severity in (ERROR, WARNING)
    assert set(rule.hides) <= {other.name for other in registry.rules()}
    for line in (rule.since, rule.until, rule.example_slurm):
        assert line is None or re.fullmatch(r"\d\d\.\d\d", line)


@every_rule
def test_a_rule_is_documented(rule: Rule) -> None:
    page = documentation.read(rule)
    assert list(page.sections) == list(documentation.HEADINGS)
    assert all(text.strip() for text in page.sections.values())
    assert re.fullmatch(r"\S.{10,120}", page.summary)
    # Python takes a backslash at the end of a line, and the line's end, out of the example.
    source = (FOLDER / f"{rule.name.replace('-', '_')}.py").read_text()
    docstring = source[: source.index('"""', 4)]
    assert docstring.startswith("r") or not re.search(r"(?<!\\)(\\\\)*\\\n", docstring)


def found_in(rule: Rule, files: dict[str, str], folder: Path) -> tuple[Diagnostic, ...]:
    """All that is found in `job.sbatch` among the files, which are written to the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    profile = (
        load_profile(str(folder / "cluster.yaml"), folder) if "cluster.yaml" in files else None
    )
    job = load(
        str(folder / "job.sbatch"),
        files["job.sbatch"],
        slurm=rule.example_slurm,
        profile=profile,
        folder=folder,
    )
    outcome = engine.check(job, registry.rules())
    for failure in outcome.failures:
        raise failure.error
    return outcome.diagnostics


def findings(rule: Rule, files: dict[str, str], folder: Path) -> list[tuple[str, str]]:
    """Rule and message of each."""
    return [(d.rule, d.message) for d in found_in(rule, files, folder)]


@every_rule
def test_the_example_is_found_by_this_rule_alone(rule: Rule, tmp_path: Path) -> None:
    found = findings(rule, documentation.read(rule).files("Example"), tmp_path)
    assert {name for name, _ in found} == {rule.name}, found


@every_rule
def test_the_better_way_is_found_by_none(rule: Rule, tmp_path: Path) -> None:
    page = documentation.read(rule)
    better = page.files("Use instead")
    assert better
    assert findings(rule, {**page.files("Example"), **better}, tmp_path) == []


@every_rule
def test_the_fix_of_the_example_mends_it(rule: Rule, tmp_path: Path) -> None:
    """Where a rule has edits; and a second run changes nothing."""
    from slurmgen.lint import fixes

    files = documentation.read(rule).files("Example")

    def find(text: str) -> tuple[Diagnostic, ...]:
        job = load("job.sbatch", text, slurm=rule.example_slurm, folder=tmp_path)
        return engine.check(job, registry.rules()).diagnostics

    def errors(text: str) -> int:
        return len(load("job.sbatch", text).script.shell.errors)

    for name, text in files.items():
        (tmp_path / name).write_bytes(text.encode())
    before = find(files["job.sbatch"])
    mendable = sum(bool(d.edits) for d in before)
    after = fixes.fixed(files["job.sbatch"], find, errors)
    assert (after != files["job.sbatch"]) == bool(mendable)
    assert len(find(after)) == len(before) - mendable
    assert fixes.fixed(after, find, errors) == after
