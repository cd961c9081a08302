"""Lines that someone meant for directives and that sbatch takes for comments or commands.

Only where options follow: `# SBATCH options below` is prose. What people write to switch
a directive off (`##SBATCH`, `## SBATCH`, `#--SBATCH`) is meant as it stands, and
`# sbatch --array=0-9 job.sh` says how the script is submitted.
"""

from __future__ import annotations

import re
from typing import NamedTuple

KEYWORD = "#SBATCH"

# With a no-break space behind it sbatch reads the keyword, and then the first option as a
# stray word.
_LINE = re.compile(
    r"(?P<mark>#!|#|＃|//|--|;|%|\$|)"
    r"(?P<gap>[ \t\u00a0]*)"
    r"(?P<word>[A-Za-z_]{4,9})"
    r"(?P<colon>:?)"
    r"(?P<blank>[^\S\n]*)"
    r"(?P<rest>(?:--?|[\u2010-\u2015])[A-Za-z]|(?:het|pack)job\s*$)"
)
_SHORTEST = len("BATCH-n")
_SCRIPT = re.compile(r"\.(sh|sbatch|slurm|job|bash|sub|py)\Z")


class NearMiss(NamedTuple):
    """What stands where `#SBATCH ` should.

    end: where the options start. written: what is there. spaced: with a blank behind the
    hash, which may be a comment after all.
    """

    end: int
    written: str
    spaced: bool


def near_miss(line: str) -> NearMiss | None:
    """What is wrong with the keyword of a line, None where the line is none of these."""
    if len(line) < _SHORTEST:
        return None
    indent = len(line) - len(line.lstrip().lstrip("\ufeff"))
    found = _LINE.match(line, indent)
    if found is None:
        return None
    mark, gap, word, blank = found["mark"], found["gap"], found["word"], found["blank"]
    exact = mark == "#" and not gap and word == KEYWORD[1:]
    if exact and not indent and not found["colon"] and not blank.strip(" \t\v\f\r"):
        return None
    if not exact and not _is_meant(mark, gap, word, blank):
        return None
    if word.islower() and _names_script(line[found.start("rest") :]):
        return None
    return NearMiss(found.start("rest"), line[: found.start("blank")].strip(), bool(gap))


def _is_meant(mark: str, gap: str, word: str, blank: str) -> bool:
    if gap and not blank:
        return False
    if gap or mark not in ("#", "#!", "＃"):
        # Prose, or no comment for a shell: only the keyword itself is clear enough.
        return word == KEYWORD[1:]
    return _is_close(word.upper())


def _is_close(word: str) -> bool:
    """Whether a word is SBATCH with one slip of the finger, or two where no other word is near."""
    if len(word) < 5 or re.fullmatch("[^S]+SBATCH", word):
        # A letter in front switches it off.
        return False
    plain = word.startswith("SB") or sorted(word) == sorted(KEYWORD[1:])
    return _distance(word, KEYWORD[1:]) <= (2 if plain else 1)


def _distance(first: str, second: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours from one to the other."""
    rows = [list(range(len(second) + 1))]
    for i, a in enumerate(first, start=1):
        row = [i]
        for j, b in enumerate(second, start=1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


def _names_script(options: str) -> bool:
    """Whether a file name ends a line of options, as on a command line."""
    words = options.partition("#")[0].split()
    return len(words) > 1 and _SCRIPT.search(words[-1]) is not None
