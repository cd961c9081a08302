"""Shell code -> tree-sitter's tree, whatever the code is, within a bounded time."""

from __future__ import annotations

import re
import time
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

# CPU seconds for any script, and for each character: four times what plain commands take.
# Ten thousand `)` or here-documents without an end take longer, and quadratically so.
_SECONDS = 0.3
_SECONDS_A_CHARACTER = 6e-7

# A tree takes up to 150 bytes for each character.
MOST_CHARACTERS = 300_000

# One byte a character, so that offsets in bytes are offsets in characters. What is not ASCII
# is to the shell a letter like any other; control characters (NUL costs the parser seconds)
# and the \r of a DOS line break become blanks.
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parsed_end(text: str) -> int:
    """The offset up to which `parse` reads: all of it, or as many lines as there is room for."""
    if len(text) <= MOST_CHARACTERS:
        return len(text)
    return text.rfind("\n", 0, MOST_CHARACTERS) + 1 or MOST_CHARACTERS


def parse(text: str) -> Node | None:
    """The root node of `text` up to `parsed_end`; None where it takes too long.

    Its byte offsets are offsets into `text`.
    """
    text = text[: parsed_end(text)]
    masked = _CONTROL.sub(" ", _NOT_ASCII.sub("_", text)).encode("ascii")
    end = time.process_time() + _SECONDS + len(masked) * _SECONDS_A_CHARACTER
    parser = _parser()
    try:
        return parser.parse(
            lambda byte, _: masked[byte : byte + 65536],
            progress_callback=lambda *_: time.process_time() > end,
        ).root_node
    except ValueError:
        # Halted: the parser would go on from there.
        parser.reset()
        return None
