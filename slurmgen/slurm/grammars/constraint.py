"""Feature constraints: `a100&nvlink`, `[rack1|rack2]`, `(a|b)&c` (sbatch(1))."""

from __future__ import annotations

import re

from slurmgen.errors import Refusal
from slurmgen.slurm.grammars.blanks import without_blanks
from slurmgen.slurm.quoting import check_directive

_TOKEN = re.compile(r"([A-Za-z0-9_.:%=+-]+)(\*[1-9][0-9]*)?|\)\*[1-9][0-9]*|[&|,()\[\]]")
_CLOSES = {")": "(", "]": "["}


def canonical_constraint(text: str) -> str:
    """The constraint without blanks; raises Refusal for what cannot be balanced or read."""
    check_directive(text)
    squeezed = without_blanks(text, "&|,()[]*")
    position, stack, brackets, after_word = 0, "", 0, False
    while position < len(squeezed):
        found = _TOKEN.match(squeezed, position)
        if found is None:
            raise _refusal(text, f'"{squeezed[position]}" has no place in it')
        token, position = found.group(0), found.end()
        if token in "([":
            if after_word:
                raise _refusal(text, f'an operator is missing before "{token}"')
            if token in stack or (stack and token == "["):
                raise _refusal(text, "Slurm takes no group inside a group of that kind")
            stack += token
            brackets += token == "["
        elif token[0] in _CLOSES:
            if not after_word or not stack or stack[-1] != _CLOSES[token[0]]:
                raise _refusal(text, f'"{token}" closes nothing')
            stack = stack[:-1]
        elif token in "&|,":
            if not after_word:
                raise _refusal(text, f'a feature is missing before "{token}"')
            after_word = False
        elif after_word:
            raise _refusal(text, f'an operator is missing before "{token}"')
        else:
            after_word = True
    if stack or not after_word:
        raise _refusal(text, "a bracket is not closed" if stack else "a feature is missing")
    if brackets > 1:
        raise _refusal(text, "Slurm takes one group in square brackets")
    inside = re.search(r"\[(.*)\]", squeezed)
    if inside and re.search("[&,]", inside[1]) and "*" not in inside[1]:
        raise _refusal(
            text, "in square brackets & joins counts of nodes: [a*2&b*4]; without them leave [] out"
        )
    return squeezed


def features(text: str) -> list[str]:
    """The names of the features in a valid constraint, without counts."""
    return [found[1] for found in _TOKEN.finditer(text) if found[1]]


def _refusal(text: str, why: str) -> Refusal:
    return Refusal(
        f'"{text}" is not a constraint',
        why=why,
        fix='write, say, a100, "a100&nvlink" or "[rack1|rack2]"',
    )
