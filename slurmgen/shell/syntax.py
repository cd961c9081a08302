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


def parse(text: str) -> Node | None:
    """The root node, its byte offsets being offsets into `text`; None where it takes too long."""
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
