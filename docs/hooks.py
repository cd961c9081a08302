"""mkdocs: a fence that names a file, as in ```` ```bash job.sbatch ````, gets it as a title."""

from __future__ import annotations

import re
from typing import Any

_NAMED = re.compile(r"^( *```\w+) (\S+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _NAMED.sub(r'\1 title="\2"', markdown)
