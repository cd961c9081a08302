"""The words of a directive line -> options, as getopt_long pairs them for sbatch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.slurm.directives.model import Directive
from slurmgen.slurm.directives.names import of_letter, resolve, single_dash
from slurmgen.slurm.directives.stray_words import is_value, meant_value
from slurmgen.slurm.directives.words import BLANKS, MOST_WORDS, Word
from slurmgen.slurm.options import catalog

if TYPE_CHECKING:
    from slurmgen.slurm.directives.model import Record

_OPTION = re.compile(r"--?[A-Za-z]")
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"


class LineOptions:
    """Reads one line into a record."""

    def __init__(
        self, record: Record, words: list[Word], number: int, start: int, component: int
    ) -> None:
        """number, start: of the line; component: of the job that it belongs to."""
        self.record = record
        self.words = words
        self.number = number
        self.start = start
        self.component = component

    def read(self) -> None:
        """Add every option, and what is none."""
        index = 0
        while index < len(self.words) and not self.record.is_full:
            word = self.words[index]
            text = word.text
            if text == "--" and index + 1 == len(self.words):
                return
            if text[0] in _DASHES and text[1:2].isalpha():
                self.words[index] = self._typeset_dash(word)
            elif text.startswith("--") and len(text) > 2:
                index = self._long(index)
            elif text.startswith("-") and text not in ("-", "--") and not self._is_negative(text):
                index = self._short(index)
            else:
                index = self._stray(index)

    def _typeset_dash(self, word: Word) -> Word:
        """The option that was meant where an editor made one long dash of `--`."""
        dash = "--" if word.text[2:3].isalpha() else "-"
        self._report("stray-text", word.start, word.start + 1, meant=dash)
        pieces = ((0, word.start), (len(dash), word.start + 1))
        return Word(dash + word.text[1:], word.start, word.end, pieces)

    def _is_negative(self, text: str) -> bool:
        """Whether a word is the number meant for the option before (`--nice -10`)."""
        before = self._before()
        return text[1].isdecimal() and before is not None and self._lacks_value(before)

    def _before(self) -> Directive | None:
        before = self.record.directives[-1] if self.record.directives else None
        on_line = before is not None and (before.line, before.component) == (
            self.number,
            self.component,
        )
        return before if on_line else None

    @staticmethod
    def _lacks_value(directive: Directive) -> bool:
        """Whether it could have a value, but only glued to it."""
        known = catalog.find(directive.option)
        return directive.value is None and known is not None and known.argument == "optional"

    # --- long options -----------------------------------------------------------------

    def _long(self, index: int) -> int:
        word = self.words[index]
        name, equals, value = word.text[2:].partition("=")
        spelled = f"--{name}"
        option, problem = resolve(name)
        if problem is not None:
            renamed = option is not None and option == name.lower().replace("_", "-")
            is_mechanical = renamed and option in catalog.options()
            self._report(
                problem,
                word.start,
                word.offset(len(spelled)),
                option=option,
                meant=f"--{option}" if is_mechanical else None,
            )
            if not is_mechanical:
                return self._unknown(index, option if renamed and option else name)
        assert option is not None
        known = catalog.options()[option]
        if known.argument == "no" and equals:
            self._report("unexpected-value", word.offset(len(spelled)), word.end, option=option)
        elif equals:
            return self._glued(index, option, spelled, value)
        elif known.argument == "required":
            return self._next(index, option, spelled)
        self._add(option, spelled, None, word.start, word.end)
        return index + 1

    def _unknown(self, index: int, option: str) -> int:
        """Perhaps a plugin's: its value may be the next word."""
        word = self.words[index]
        name, equals, value = word.text.partition("=")
        following = self.words[index + 1] if index + 1 < len(self.words) else None
        if equals:
            at = word.behind(len(name) + 1)
            self._add(option, name, value, word.start, word.end, at)
        elif following is not None and not following.text.startswith("-"):
            self._add(option, name, following.text, word.start, following.end, following.start)
            return index + 2
        else:
            self._add(option, name, None, word.start, word.end)
        return index + 1

    def _glued(self, index: int, option: str, spelled: str, value: str) -> int:
        """A value behind `=`; where nothing is there, the next word was meant."""
        word = self.words[index]
        following = self.words[index + 1] if index + 1 < len(self.words) else None
        if value or following is None or _OPTION.match(following.text):
            at = word.behind(len(spelled) + 1)
            self._add(option, spelled, value, word.start, word.end, at)
            return index + 1
        written = self.record.text[following.start : following.end]
        self._report("stray-text", word.end, following.end, option=option, meant=written)
        self._add(option, spelled, following.text, word.start, following.end, following.start)
        return index + 2

    def _next(self, index: int, option: str, spelled: str) -> int:
        """A value in the next word, before which `=` may stand by mistake."""
        word = self.words[index]
        following = self.words[index + 1] if index + 1 < len(self.words) else None
        if following is None or _is_known_option(following.text):
            # sbatch takes the next option for the value, that of the next line too.
            self._report("missing-value", word.start, word.end, option=option)
            self._add(option, spelled, None, word.start, word.end)
            return index + 1
        last, value, start = following, following.text, following.start
        if value.startswith("="):
            if value == "=" and index + 2 < len(self.words):
                index += 1
                last = self.words[index + 1]
                value, start = last.text, last.start
            else:
                value, start = value[1:], following.behind(1)
            mark = "=" if spelled.startswith("--") else " "
            meant = mark + self.record.text[start : last.end] if value else None
            self._report("stray-text", word.end, last.end, option=option, meant=meant)
        self._add(option, spelled, value, word.start, last.end, start)
        return index + 2

    # --- short options ----------------------------------------------------------------

    def _short(self, index: int) -> int:
        """A cluster of letters; the last one may have a value, glued or in the next word."""
        word = self.words[index]
        meant = single_dash(word.text)
        if meant is not None:
            return self._single_dashed(index, meant)
        for position, letter in enumerate(word.text[1 : MOST_WORDS + 1], start=1):
            start = word.start if position == 1 else word.offset(position)
            has_rest, has_equals = (
                position + 1 < len(word.text),
                word.text.startswith("=", position + 1),
            )
            known = of_letter(letter)
            spelled = f"-{letter}"
            if known is None:
                self._report("unknown-option", start, word.end)
                self._add(letter, spelled, None, start, word.end)
                return index + 1
            if known.argument == "no":
                self._add(known.name, spelled, None, start, word.offset(position + 1))
                if has_equals:
                    place = word.offset(position + 1)
                    self._report("unexpected-value", place, word.end, option=known.name)
                    return index + 1
            elif has_equals and known.argument == "required":
                return self._short_equals(index, known.name, position)
            elif has_rest:
                at = word.behind(position + 1)
                self._add(known.name, spelled, word.text[position + 1 :], start, word.end, at)
                return index + 1
            elif known.argument == "required":
                return self._next(index, known.name, spelled)
            else:
                self._add(known.name, spelled, None, start, word.end)
        return index + 1

    def _short_equals(self, index: int, option: str, position: int) -> int:
        """`-N=2`, which asks for "=2" nodes."""
        word = self.words[index]
        value, at = word.text[position + 2 :], word.behind(position + 2)
        if not value and index + 1 < len(self.words):
            index += 1
            value, at = self.words[index].text, self.words[index].start
        end = self.words[index].end
        start = word.start if position == 1 else word.offset(position)
        # With letters before it in the cluster the dash is theirs.
        spelled = f"-{word.text[position]}"
        meant = f"{spelled if position == 1 else spelled[1:]} {self.record.text[at:end]}"
        self._report(
            "short-option-equals", start, end, option=option, meant=meant if value else None
        )
        self._add(option, spelled, value, start, end, at)
        return index + 1

    def _single_dashed(self, index: int, option: str) -> int:
        """`-nodes=2`, which is `-n` with the value `odes=2`."""
        word = self.words[index]
        name, equals, _ = word.text.partition("=")
        end = word.offset(len(name))
        is_ours = option in catalog.options()
        meant = f"--{option}" if is_ours else None
        self._report("unknown-option", word.start, end, option=option, meant=meant)
        if not equals and is_ours and catalog.options()[option].argument == "required":
            return self._next(index, option, name)
        if equals:
            return self._unknown(index, option)
        self._add(option, name, None, word.start, word.end)
        return index + 1

    # --- stray words ------------------------------------------------------------------

    def _stray(self, index: int) -> int:
        """Words that are neither an option nor its value; sbatch refuses the script."""
        stop = index + 1
        while stop < len(self.words) and not _OPTION.match(self.words[stop].text):
            stop += 1
        run = self.words[index:stop]
        start, end = run[0].start, run[-1].end
        before = self._before()
        if before is None:
            self._report("stray-text", start, end)
            return stop
        stray = [word.text for word in run]
        value = meant = None
        if before.value_start is not None and before.value is not None:
            value = meant_value(before.option, before.value, stray)
            start = start if value is None else before.value_start
            meant = None if value is None else _quoted(value)
        elif self._lacks_value(before) and is_value(before.option, " ".join(stray)):
            value, start = stray[0], before.end
            meant = ("=" if before.spelled.startswith("--") else "") + value
        self._report("stray-text", start, end, option=before.option, meant=meant)
        if value is not None:
            at = run[0].start if before.value_start is None else before.value_start
            self.record.directives[-1] = before._replace(
                value=value, end=end, length=end - before.start, value_start=at, value_end=end
            )
        return stop

    # --- the record -------------------------------------------------------------------

    def _report(
        self,
        kind: str,
        start: int,
        end: int,
        *,
        option: str | None = None,
        meant: str | None = None,
    ) -> None:
        self.record.report(kind, self.number, start, end, option=option, meant=meant)

    def _add(
        self,
        option: str,
        spelled: str,
        value: str | None,
        start: int,
        end: int,
        value_start: int | None = None,
    ) -> None:
        """A value ends where its option does."""
        text = self.record.text
        if value_start is not None and text[value_start : value_start + 1] == ":":
            if text[value_start - 1] in BLANKS:
                # sbatch ends at a word that starts so: Unexpected `:`.
                self._report("stray-text", value_start, end, option=option)
        self.record.directives.append(
            Directive(
                self.number,
                start - self.start + 1,
                max(1, end - start),
                option,
                spelled,
                value,
                self.component,
                start,
                end,
                value_start,
                None if value_start is None else end,
            )
        )


def _is_known_option(word: str) -> bool:
    return word.startswith("--") and resolve(word[2:].partition("=")[0])[1] is None


def _quoted(value: str) -> str | None:
    """The value as one word of a directive, None where that would need escapes."""
    if '"' in value or "\\" in value:
        return None
    return f'"{value}"' if " " in value else value
