"""The report for programs: JSON, GitHub's commands and SARIF, the last against its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from slurmgen.cli import report
from slurmgen.diagnostics import ERROR, WARNING, Diagnostic, Edit, Place
from slurmgen.lint.sarif import format_sarif

# The OASIS standard's own.
SCHEMA = json.loads((Path(__file__).parent / "data" / "sarif-schema-2.1.0.json").read_text())
TEXT = "#!/bin/bash\r\n#SBATCH --nodes=2 # é 😀\nsrun x\nsrun x\n"


def diagnostic(line: int, column: int = 1, **others: Any) -> Diagnostic:
    values: dict[str, Any] = {
        "rule": "unused-suppression",
        "code": "SG020",
        "severity": WARNING,
        "message": "nothing here is suppressed by x",
        "why": "it stays",
        "fix": "remove it",
        **others,
    }
    length, path = values.pop("length", 1), values.pop("path", "job.sbatch")
    return Diagnostic(Place(line, column, length, path), **values)


def test_json_has_these_keys_and_no_others() -> None:
    found = json.loads(
        report.format_json([diagnostic(3), diagnostic(2, also=(Place(1, 1, path="a"),))])
    )
    assert [one["line"] for one in found] == [2, 3]
    assert found[1] == {
        "path": "job.sbatch",
        "line": 3,
        "column": 1,
        "rule": "unused-suppression",
        "code": "SG020",
        "severity": "warning",
        "message": "nothing here is suppressed by x",
        "why": "it stays",
        "fix": "remove it",
    }
    assert json.loads(report.format_json([])) == []


def test_the_text_has_further_places() -> None:
    also = (Place(7, 2, path="train.py"),)
    text = report.format_text([diagnostic(3, also=also, length=4)], {"job.sbatch": TEXT})
    assert text == (
        "job.sbatch:3:1: warning: nothing here is suppressed by x [unused-suppression SG020]\n"
        "  |\n"
        "3 | srun x\n"
        "  | ^~~~\n"
        "  = also: train.py:7:2\n"
        "  = why: it stays\n"
        "  = fix: remove it"
    )


def test_a_form_feed_is_no_line_end() -> None:
    text = report.format_text([diagnostic(2)], {"job.sbatch": "a\fb\nsecond\r\n"})
    assert "2 | second\n" in text


def test_github_takes_no_character_for_its_own() -> None:
    odd = diagnostic(
        3, 5, length=4, path="a,b:c%.sh", severity=ERROR, message="50% of\nthis: that", why=""
    )
    assert report.format_github([odd]) == (
        "::error file=a%2Cb%3Ac%25.sh,line=3,col=5,endColumn=9,title=unused-suppression SG020::"
        "50%25 of%0Athis: that%0Afix: remove it"
    )
    assert report.format_github([]) == ""


def sarif(*found: Diagnostic) -> dict[str, Any]:
    log = json.loads(format_sarif(found, {"job.sbatch": TEXT}))
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def test_sarif_without_findings() -> None:
    run = sarif()
    assert run["results"] == []
    assert run["columnKind"] == "unicodeCodePoints"


def test_sarif_has_rules_places_and_fixes() -> None:
    start = TEXT.index("#SBATCH")
    edits = (Edit(start + 16, start + 17, ""), Edit(len(TEXT), len(TEXT), "x\n"))
    run = sarif(
        diagnostic(3),
        diagnostic(4),
        diagnostic(
            2, 18, length=5, severity=ERROR, also=(Place(7, 2, path="a b/train.py"),), edits=edits,
            edited="job.sbatch",
        ),
        diagnostic(9, rule="invalid-value", code="SG004", path="job.yaml", why="", fix=""),
    )  # fmt: skip
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["SG004", "SG020"]
    assert "## Example" in rules[1]["help"]["markdown"]
    first, second, third, fourth = run["results"]
    assert first["ruleIndex"] == 1
    assert first["level"] == "error"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "job.sbatch", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 2, "startColumn": 18, "endColumn": 23}
    related = first["relatedLocations"][0]["physicalLocation"]
    assert related["artifactLocation"]["uri"] == "a%20b/train.py"
    (change,) = first["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 2, "startColumn": 17, "endLine": 2, "endColumn": 18},
            "insertedContent": {"text": ""},
        },
        {
            "deletedRegion": {"startLine": 5, "startColumn": 1, "endLine": 5, "endColumn": 1},
            "insertedContent": {"text": "x\n"},
        },
    ]
    assert fourth["message"]["text"] == "nothing here is suppressed by x."
    # The same fault on the same words: the first one and the second.
    prints = [r["partialFingerprints"]["primaryLocationLineHash"] for r in (second, third)]
    assert [value.partition(":")[2] for value in prints] == ["1", "2"]
    assert prints[0].partition(":")[0] == prints[1].partition(":")[0]


@pytest.mark.parametrize("path", ["/a b/job.sbatch", "<stdin>", "é.sbatch", "a:b", "\ufffd"])
def test_sarif_takes_any_path(path: str) -> None:
    run = sarif(diagnostic(1, path=path))
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
