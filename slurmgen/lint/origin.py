"""From a place in a rendered script back to the job file that says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.script import stamp_reader
from slurmgen.slurm import directives

if TYPE_CHECKING:
    from slurmgen.diagnostics import KeyPath, Place
    from slurmgen.jobfile.source import Source
    from slurmgen.script.plan import JobPlan

_SETUP = {
    "module": "modules",
    "source": "venv",
    "conda": "conda",
    "uv": "uv",
}


class Origin(NamedTuple):
    """The job file behind a rendered script.

    text: the script. yaml: the job file's text.
    """

    plan: JobPlan
    source: Source
    text: str
    yaml: str

    def locate(self, place: Place) -> Place:
        """The place in the job file."""
        lines = self.text.split("\n")
        line = lines[place.line - 1] if place.line <= len(lines) else ""
        if line.startswith("#SBATCH"):
            return self.source.locate(self._directive(place.line))
        said = stamp_reader.read(self.text)
        found = said and stamp_reader.key_at(said, place.line)
        if found:
            return self._text_of(*found, place, line)
        first = line.split(" ", 1)[0]
        if first in _SETUP and ("setup", _SETUP[first]) in self.source.spans:
            return self.source.locate(("setup", _SETUP[first]))
        return self._program(place, line)

    def _directive(self, line: int) -> KeyPath:
        here = (d.option for d in directives.read(self.text).directives if d.line == line)
        option = next(here, "")
        key = {d.option: d.key for d in self.plan.directives}.get(option, ())
        # Under `sbatch`, an option may be written with underscores.
        other = tuple(str(part).replace("-", "_") for part in key)
        return other if key not in self.source.spans and other in self.source.spans else key

    def _text_of(self, key: KeyPath, number: int, place: Place, line: str) -> Place:
        """The line of a key's text in which the script's line stands."""
        start = self.source.locate(key)
        written = self.yaml.split("\n")
        if start.path != self.source.path or key not in self.source.spans or key[0] == "env":
            return start
        if written[start.line - 1][start.column - 1 : start.column] == "|":
            return self._in_line(start.line + number, start, place, line) or start
        return self._below(start, place, line) or start

    def _below(self, start: Place, place: Place, line: str) -> Place | None:
        """The first line from `start` on that holds the script's."""
        lines = range(start.line - 1, start.line + _LONGEST)
        answers = (self._in_line(at, start, place, line) for at in lines)
        return next((found for found in answers if found is not None), None)

    def _in_line(self, at: int, start: Place, place: Place, line: str) -> Place | None:
        """The same characters in line `at` (from 0) of the job file, where they are there."""
        written = self.yaml.split("\n")
        column = written[at].find(line.strip()) if at < len(written) else -1
        if column < 0 or not line.strip():
            return None
        indent = len(line) - len(line.lstrip())
        shift = max(0, place.column - 1 - indent)
        length = min(place.length, len(written[at]) - column - shift)
        return start._replace(line=at + 1, column=column + 1 + shift, length=length)

    def _program(self, place: Place, line: str) -> Place:
        """The very line, where it is one of the command's; else the key that gives the program."""
        key: KeyPath = ("ddp",) if self.plan.entrypoint else ("command",)
        for candidate in (key, ("setup", "commands")):
            start = self.source.locate(candidate)
            found = self._below(start, place, line)
            if found is not None:
                return found
        return self.source.locate(key)


# Lines of a command that are looked at.
_LONGEST = 2000
