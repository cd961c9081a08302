"""What a picture shows of a job's own texts: as text, whatever they hold."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from slurmgen.script import picture

HOSTILE = [
    "<script>alert(1)</script>",
    "\"/><image href='x' onerror='alert(1)'/>",
    "]]><!-- &amp; &#0;",
    "\x00\x1b[31m\x07\x9b",
    "\ufffe\uffff",
    "\u202etxt.exe",
    "\ud800",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_no_markup(text: str) -> None:
    svg = picture.document(text, text, [(text, [("gpu", text, text)])], text, [text])
    root = ElementTree.fromstring(svg)
    kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert kinds <= {"svg", "style", "rect", "text", "g", "title"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in attributes if name.startswith("on") or "href" in name]
    shown = "".join(c if c.isprintable() else "?" for c in text)
    assert shown in [element.text for element in root.iter()]
