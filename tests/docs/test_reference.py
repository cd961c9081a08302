"""What is written from the keys of the job file says what they say; `make docs` writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.docs import given, pages, reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_the_page_is_up_to_date(golden: Callable[[Path, str], None]) -> None:
    golden(pages.DOCS / "reference" / "job-file.md", reference.page())


def test_what_python_may_give_is_up_to_date(golden: Callable[[Path, str], None]) -> None:
    golden(pages.DOCS.parent / "slurmgen" / "jobfile" / "given.py", given.module())
