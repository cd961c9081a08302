"""YAML text to data: where each error is shown, and files made to overwhelm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from slurmgen.errors import InvalidInput
from slurmgen.jobfile import source
from slurmgen.jobfile.source import decode, parse_yaml

if TYPE_CHECKING:
    from slurmgen.diagnostics import Diagnostic


def problem(text: str) -> Diagnostic:
    with pytest.raises(InvalidInput) as caught:
        parse_yaml(text, "job.yaml")
    (found,) = caught.value.diagnostics
    return found


PLACES = {
    "command: x\n# ééé\njob_name: \x07": (3, 11, "U+0007 is not allowed"),
    "# 😀é\n\x07": (2, 1, "U+0007 is not allowed"),
    "a: 😀\x07": (1, 5, "U+0007 is not allowed"),
    "a: b\r\n# é\r\nc: \x1b": (3, 4, "U+001B is not allowed"),
    "é: \udcff": (1, 4, "not UTF-8"),
    "a: &a [*a]": (1, 4, "alias of itself"),
    "a: &a {b: {c: *a}}": (1, 4, "alias of itself"),
    "a: " + "[" * 600 + "]" * 600: (1, 35, "nested more than 32 deep"),
    "a:\n" + "- " * 900 + "a": (2, 63, "nested more than 32 deep"),
}


@pytest.mark.parametrize("text", PLACES, ids=range(len(PLACES)))
def test_each_error_has_its_place(text: str) -> None:
    line, column, message = PLACES[text]
    found = problem(text)
    assert (found.location.line, found.location.column) == (line, column)
    assert message in found.message
    assert found.fix


def test_deeper_than_libyaml_itself_reads() -> None:
    """Newer ones stop at 1,000 and say where; older ones have no limit of their own."""
    found = problem("a: " + "[" * 5000 + "]" * 5000)
    assert found.location.column in (35, 1003)
    assert "nested more than 32 deep" in found.message


@pytest.mark.parametrize("text", PLACES, ids=range(len(PLACES)))
def test_the_parser_in_python_finds_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML was built without libyaml; its own limit of depth is Python's."""

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own protocol

    monkeypatch.setattr(source, "_TextLoader", Loader)
    line, column, message = PLACES[text]
    found = problem(text)
    assert message in found.message
    if len(text) < 1000:
        assert (found.location.line, found.location.column) == (line, column)


def test_the_parser_in_python_has_a_depth_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_TextLoader", yaml.SafeLoader)
    assert "nested more than 32 deep" in problem("a: " + "[" * 5000 + "]" * 5000).message


def test_what_is_deep_enough_for_anybody() -> None:
    assert parse_yaml("a: {b: {c: {d: [[e]]}}}", "x").data == {"a": {"b": {"c": {"d": [["e"]]}}}}


def test_an_alias_that_ends_is_fine() -> None:
    assert parse_yaml("a: &a [x]\nb: [*a, *a]", "x").data == {"a": ["x"], "b": [["x"], ["x"]]}


def test_the_place_of_a_byte_that_is_no_text() -> None:
    with pytest.raises(InvalidInput) as caught:
        decode(b"\xef\xbb\xbf# \xc3\xa9\nab\xff", "f")
    assert caught.value.diagnostics[0].location.start == ("f", 2, 3)
    assert decode(b"\xef\xbb\xbfa: \xc3\xa9", "f") == "a: é"
