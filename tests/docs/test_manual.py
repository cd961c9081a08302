"""man/ is what `--help` says (`make docs` writes it), and man shows it."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from slurmgen.cli import helptext, verbs
from tests.docs import manual

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGES = manual.pages()


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}, which is not installed")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(manual.MAN / name, PAGES[name])


def test_there_is_no_page_of_a_command_that_is_gone() -> None:
    assert {path.name for path in manual.MAN.iterdir()} == PAGES.keys()


def test_mandoc_has_nothing_against_them() -> None:
    """But that they have no date: what is rendered twice is the same."""
    needs("mandoc")
    checked = subprocess.run(
        ["mandoc", "-T", "lint", *sorted(manual.MAN.iterdir())], capture_output=True, text=True
    )
    found = (checked.stdout + checked.stderr).splitlines()
    assert [line for line in found if "missing date" not in line] == []


def test_groff_has_nothing_against_them() -> None:
    needs("groff")
    checked = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", *sorted(manual.MAN.iterdir())],
        capture_output=True,
        text=True,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_man_finds_and_shows_them_beside_the_program(tmp_path: Path) -> None:
    """As pip lays them: bin/ on PATH, and share/man beside it."""
    needs("man")
    (tmp_path / "share" / "man").mkdir(parents=True)
    shutil.copytree(manual.MAN, tmp_path / "share" / "man" / "man1")
    (tmp_path / "bin").mkdir()
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    env = {k: v for k, v in os.environ.items() if k not in ("MANPATH", "MANPAGER", "PAGER")}
    env |= {"PATH": path, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
    for words in (["slurmgen-render"], ["slurmgen", "render"]):
        done = subprocess.run(["man", *words], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "slurmgen render [OPTIONS] [JOB...]" in done.stdout
        assert "slurmgen render -c lumi" in done.stdout or "--set nodes=4" in done.stdout
        assert "the script beside each job file" in " ".join(done.stdout.split())


def test_every_word_of_the_help_is_in_a_page() -> None:
    for page in helptext.pages(verbs.ALL, "slurmgen"):
        text = " ".join(PAGES[f"{page.command.replace(' ', '-')}.1"].split())
        for word, meaning in (*page.arguments, *page.options, *page.verbs):
            assert word.replace("-", r"\-") in text
            assert meaning.replace("-", r"\-").replace("'", r"\(aq") in text
