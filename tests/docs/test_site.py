"""The site can be built, and no link in it leads nowhere."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.docs import pages

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = pages.ROOT / "mkdocs.yml"


def in_nav(entry: Any) -> set[str]:
    """The pages of a part of the menu."""
    if isinstance(entry, str):
        return {entry}
    parts = entry.values() if isinstance(entry, dict) else entry
    return {page for part in parts for page in in_nav(part)}


def test_every_page_is_in_the_menu() -> None:
    menu = in_nav(yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["nav"])
    assert {pages.name_of(page) for page in pages.written()} <= menu


@pytest.mark.skipif(
    importlib.util.find_spec("material") is None, reason="needs mkdocs-material (extra docs)"
)
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    """--strict: a link, an anchor or a page of the menu that is not there is an error."""
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=pages.ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stderr
    page = (tmp_path / "site" / "rules" / "time-in-minutes" / "index.html").read_text()
    # The fences that name a file are blocks, with the name above them.
    assert '<span class="filename">job.sbatch</span>' in page
