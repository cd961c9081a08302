"""A line for each event, with who says it and when, in one write."""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING

from slurmgen.ddp import log
from slurmgen.ddp.failure import LaunchError

if TYPE_CHECKING:
    import pytest

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


class Raw(io.RawIOBase):
    """What a file sees: each write that reaches it."""

    def __init__(self) -> None:
        self.writes: list[str] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        self.writes.append(bytes(data).decode())  # type: ignore[call-overload]
        return len(self.writes[-1])


def listen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The writes that reach stderr from here on."""
    raw = Raw()
    # As Python makes its own stderr.
    stream = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", line_buffering=True)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(log, "_speaker", log._Speaker())
    return raw.writes


def test_who_says_it_and_when(monkeypatch: pytest.MonkeyPatch) -> None:
    writes = listen(monkeypatch)
    log.note("starts")
    log.speak_as(0)
    log.note("meets")
    log.speak_as(12)
    log.warn("limps")
    patterns = [
        rf"slurmgen\.ddp {TIME}: starts\n",
        rf"slurmgen\.ddp {TIME} rank 0: meets\n",
        rf"slurmgen\.ddp {TIME} rank 12: warning: limps\n",
    ]
    assert len(writes) == len(patterns)
    for pattern, written in zip(patterns, writes, strict=True):
        assert re.fullmatch(pattern, written)


def test_a_refusal_says_what_why_and_how_to_fix_it(monkeypatch: pytest.MonkeyPatch) -> None:
    writes = listen(monkeypatch)
    log.refuse(LaunchError("no GPU", why="it would idle", fix="ask for one"))
    expected = r": error: no GPU\n  = why: it would idle\n  = fix: ask for one\n"
    assert len(writes) == 1
    assert re.fullmatch(rf"slurmgen\.ddp {TIME}{expected}", writes[0])


def test_many_lines_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    writes = listen(monkeypatch)
    table = "\n".join(f"{rank:4}  n{rank // 8}  cuda:{rank % 8}" for rank in range(1024))
    log.note(table)
    assert len(writes) == 1
    assert writes[0].endswith(f": {table}\n")


def test_a_text_that_ends_its_line_gets_no_second_end(monkeypatch: pytest.MonkeyPatch) -> None:
    writes = listen(monkeypatch)
    log.say("Traceback\n")
    log.say("as it is")
    assert writes == ["Traceback\n", "as it is\n"]


def test_what_cannot_be_written_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    closed = io.StringIO()
    closed.close()
    for stream in (Full(), closed):
        monkeypatch.setattr(sys, "stderr", stream)
        log.note("step 10")
