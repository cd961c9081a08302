"""What of a rendered script is kept as expected: few of them whole, of the others the code.

The whole ones are a launcher's each, and the job that has every key: a comment of a template that
is worded otherwise changes these files and no more. Stamps have tests of their own, and hashes.
"""

from __future__ import annotations

import re

from slurmgen.script import stamp

WHOLE = ("everything", "requeue", "single-gpu", "spawn", "torchrun")
# Comments of the templates; not the summary, which is computed, nor what shellcheck reads.
_COMMENT = re.compile(r"(?m)^ *# (?!shellcheck |One process on |\d+ ranks? on ).*\n")


def expected(script: str, *, whole: bool) -> str:
    """The script without its stamp and, unless it is kept whole, without comments."""
    text = stamp.without(script)
    return text if whole else _COMMENT.sub("", text)
