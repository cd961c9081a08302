"""docs/reference/job-file.md is what the models say; `make docs` writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.docs import pages, reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_it_is_up_to_date(golden: Callable[[Path, str], None]) -> None:
    golden(pages.DOCS / "reference" / "job-file.md", reference.page())
