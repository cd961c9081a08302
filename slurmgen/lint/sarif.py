"""Diagnostics as SARIF 2.1.0, which code-scanning services read.

Section numbers are those of the OASIS standard.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from slurmgen import __version__
from slurmgen.diagnostics import order
from slurmgen.lint import documentation, other_codes, registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slurmgen.diagnostics import Diagnostic, Edit, Place
    from slurmgen.lint.other_codes import Code

# What is said of the further places of a finding.
_ALSO = "the same cause"
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def format_sarif(diagnostics: Iterable[Diagnostic], texts: Mapping[str, str]) -> str:
    """One run with all results. texts: of the files that are pointed into, where known."""
    found = sorted(diagnostics, key=order)
    codes = sorted({d.code: d for d in found}.values(), key=lambda d: d.code)
    driver = {
        "name": "slurmgen",
        "version": __version__,
        "rules": [_rule(diagnostic) for diagnostic in codes],
    }
    prints = _fingerprints(found, texts)
    index = {diagnostic.code: number for number, diagnostic in enumerate(codes)}
    run = {
        "tool": {"driver": driver},
        # Ours count what Python counts.
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(diagnostic, index[diagnostic.code], print_, texts)
            for diagnostic, print_ in zip(found, prints, strict=True)
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(diagnostic: Diagnostic) -> dict[str, Any]:
    rule = registry.find(diagnostic.code)
    described: dict[str, Any] = {"id": diagnostic.code, "name": diagnostic.rule}
    if rule is None:
        # Nothing that a rule of lint has found.
        code = other_codes.find(diagnostic.code)
        return described if code is None else {**described, **_beyond(code)}
    page = documentation.page(rule)
    return {
        **described,
        "shortDescription": {"text": f"{documentation.read(rule).summary}."},
        "help": {"text": documentation.explain(rule.name), "markdown": page},
        "defaultConfiguration": {"level": rule.severity},
    }


def _beyond(code: Code) -> dict[str, Any]:
    return {
        "shortDescription": {"text": f"{code.summary}."},
        "help": {"text": other_codes.explain(code)},
        "defaultConfiguration": {"level": code.severity},
    }


def _result(
    diagnostic: Diagnostic, index: int, fingerprint: str, texts: Mapping[str, str]
) -> dict[str, Any]:
    parts = [f"{diagnostic.message}."]
    parts += [f"Why: {diagnostic.why}."] if diagnostic.why else []
    parts += [f"Fix: {diagnostic.fix}."] if diagnostic.fix else []
    result = {
        "ruleId": diagnostic.code,
        "ruleIndex": index,
        "level": diagnostic.severity,
        "message": {"text": " ".join(parts)},
        "locations": [_location(diagnostic.location)],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
    }
    if diagnostic.also:
        result["relatedLocations"] = [
            {**_location(place._replace(length=1)), "id": number, "message": {"text": _ALSO}}
            for number, place in enumerate(diagnostic.also, start=1)
        ]
    if diagnostic.edits and diagnostic.edited in texts:
        result["fixes"] = [_fix(diagnostic, texts[diagnostic.edited])]
    return result


def _location(place: Place) -> dict[str, Any]:
    region = {
        "startLine": place.line,
        "startColumn": place.column,
        "endColumn": place.column + place.length,
    }
    return {"physicalLocation": {"artifactLocation": _artifact(place.path), "region": region}}


def _artifact(path: str) -> dict[str, str]:
    pure = PurePath(path)
    if pure.is_absolute():
        return {"uri": pure.as_uri()}
    return {"uri": quote(pure.as_posix()), "uriBaseId": "%SRCROOT%"}


def _fix(diagnostic: Diagnostic, text: str) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(edit, text), "insertedContent": {"text": edit.text}}
        for edit in sorted(diagnostic.edits)
    ]
    change = {"artifactLocation": _artifact(diagnostic.edited), "replacements": replacements}
    return {"description": {"text": diagnostic.fix}, "artifactChanges": [change]}


def _region(edit: Edit, text: str) -> dict[str, int]:
    """An empty region is one that ends where it starts (3.30.2)."""
    start_line, start_column = _position(edit.start, text)
    end_line, end_column = _position(edit.end, text)
    return {
        "startLine": start_line,
        "startColumn": start_column,
        "endLine": end_line,
        "endColumn": end_column,
    }


def _position(offset: int, text: str) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _fingerprints(found: Sequence[Diagnostic], texts: Mapping[str, str]) -> list[str]:
    """What a result keeps when lines above it come or go: rule and line, and which of several."""
    lines = {path: text.split("\n") for path, text in texts.items()}
    seen: Counter[tuple[str, str]] = Counter()
    prints = []
    for diagnostic in found:
        path, number, _ = diagnostic.location.start
        of_file = lines.get(path, [])
        line = of_file[number - 1].strip() if 0 < number <= len(of_file) else ""
        digest = hashlib.sha256(f"{diagnostic.code}\0{line}".encode(errors="replace"))
        key = (path, digest.hexdigest()[:16])
        seen[key] += 1
        prints.append(f"{key[1]}:{seen[key]}")
    return prints
