"""Which answers of the rules remain, and what becomes of a rule that breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.diagnostics import ERROR, WARNING, Place
from slurmgen.errors import UsageError
from slurmgen.lint import engine, registry
from slurmgen.lint.finding import Finding
from slurmgen.lint.job import load
from slurmgen.lint.registry import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from tests.lint.conftest import Rules

SCRIPT = "#!/bin/bash\n#SBATCH --nodes=2\nzeta alpha\nbeta\n"


def test_findings_come_by_place_whatever_the_order_of_the_rules(rules: Rules) -> None:
    for word in ("zeta", "beta", "alpha"):
        rules.word(word)
    assert rules.found(SCRIPT) == [("no-zeta", 3), ("no-alpha", 3), ("no-beta", 4)]


def test_a_rule_says_a_thing_once_a_place(rules: Rules) -> None:
    def check(job: Job) -> Iterator[Finding]:
        yield Finding(Place(3, 1), "first", "", "")
        yield Finding(Place(3, 1), "second", "", "")
        yield Finding(Place(3, 2), "third", "", "")

    rules.add(Rule("twice", "SG199", WARNING, check))
    assert [d.message for d in rules.check(SCRIPT).diagnostics] == ["first", "third"]


def test_the_severity_of_a_finding_comes_before_that_of_its_rule(rules: Rules) -> None:
    def check(job: Job) -> Iterator[Finding]:
        yield Finding(Place(3, 1), "sure", "", "", ERROR)
        yield Finding(Place(4, 1), "not sure", "", "")

    rules.add(Rule("both", "SG199", WARNING, check))
    assert [d.severity for d in rules.check(SCRIPT).diagnostics] == [ERROR, WARNING]


def test_a_consequence_is_not_told_beside_its_cause(rules: Rules) -> None:
    rules.word("zeta", hides=("no-beta",))
    rules.word("beta", hides=("no-alpha",))
    rules.word("alpha")
    assert rules.found(SCRIPT) == [("no-zeta", 3)]
    assert rules.found(SCRIPT.replace("zeta", "")) == [("no-beta", 4)]


def test_a_cause_in_one_component_explains_nothing_in_another(rules: Rules) -> None:
    rules.word("one", hides=("no-two",))
    rules.word("two")
    script = (
        "#!/bin/bash\n#SBATCH --comment=one --job-name=two\n#SBATCH hetjob\n#SBATCH --comment=two\n"
    )
    assert rules.found(script + "two\n") == [("no-one", 2), ("no-two", 4)]
    assert rules.found(script + "one\n") == [("no-one", 2), ("no-one", 5)]


def test_a_rule_that_breaks_leaves_the_others_their_say(rules: Rules) -> None:
    def check(job: Job) -> Iterator[Finding]:
        yield Finding(Place(4, 1), "before it broke", "", "")
        raise ZeroDivisionError

    rules.add(Rule("broken", "SG199", WARNING, check))
    rules.word("zeta")
    outcome = rules.check(SCRIPT)
    assert [d.rule for d in outcome.diagnostics] == ["no-zeta", "broken"]
    (failure,) = outcome.failures
    assert (failure.what, failure.path) == ("broken", "job.sbatch")
    assert isinstance(failure.error, ZeroDivisionError)


@pytest.mark.parametrize(
    ("limits", "lines"),
    [
        ({}, ["", "20.11", "22.05", "23.11"]),
        ({"since": "22.05"}, ["", "22.05", "23.11"]),
        ({"until": "23.11"}, ["", "20.11", "22.05"]),
        ({"since": "22.05", "until": "23.11"}, ["", "22.05"]),
        ({"since": "22.05", "version_needed": True}, ["22.05", "23.11"]),
    ],
)
def test_a_rule_is_asked_where_it_holds(
    rules: Rules, limits: dict[str, Any], lines: list[str]
) -> None:
    rule = rules.add(rules.word("zeta")._replace(**limits))
    asked = [
        line
        for line in ("", "20.11", "22.05", "23.11")
        if engine.check(load("job.sbatch", SCRIPT, slurm=line or None), [rule]).diagnostics
    ]
    assert asked == lines


def test_rules_are_chosen_by_name_code_and_family() -> None:
    everything = registry.choose()
    assert [rule.code for rule in everything] == sorted(rule.code for rule in everything)
    assert [rule.name for rule in registry.choose(["SG020"])] == ["unused-suppression"]
    assert [rule.name for rule in registry.choose(["unused-suppression"])] == ["unused-suppression"]
    assert registry.choose(["sg0"]) == registry.choose(["SG020"])
    assert "unused-suppression" not in {rule.name for rule in registry.choose(ignore=["SG0"])}
    assert registry.choose(["SG020"], ["SG02"]) == ()
    assert registry.choose([" SG020 ,unused-suppression"]) == registry.choose(["SG020"])


@pytest.mark.parametrize("name", ["unused-supression", "SG02O", "SG9", "SG", "S", "", "x" * 5000])
def test_an_unknown_rule_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        registry.choose([name])
    assert len(str(caught.value)) < 200
    assert caught.value.fix


def test_a_misspelt_rule_is_guessed() -> None:
    assert registry.suggestion("unused-supression") == "write unused-suppression (SG020)"
    assert registry.suggestion("Unused_Suppression") == "write unused-suppression (SG020)"


def test_a_message_is_one_line() -> None:
    """A value with a line break in it would forge a line of the report."""
    text = (
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=8\n#SBATCH --gres=gpu:8\n"
        'srun --container-image=pt.sqsh --export="\nA=1" python train.py\n'
    )
    found = engine.check(load("job.sbatch", text), registry.rules()).diagnostics
    assert any(d.message == "--export= A=1 leaves out ALL" for d in found)
    assert not any("\n" in d.message + d.why for d in found)
