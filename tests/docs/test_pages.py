"""What the pages show is what happens."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from slurmgen.cluster import generic
from slurmgen.jobfile.job import JobSpec
from slurmgen.jobfile.load import load_job
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from tests.docs import pages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGES = pages.written()
# `shell` is for commands that are not run here: they install, submit or train.
LANGUAGES = {"bash", "console", "diff", "jinja", "json", "python", "shell", "text", "yaml", "yml"}
# What makes a job file whole, so that a part of one can be read.
WHOLE = "command: python train.py\n"


def all_blocks(*languages: str) -> list[pytest.param]:  # type: ignore[valid-type]
    return [
        pytest.param(block, id=f"{pages.name_of(page)}:{text[: block.start].count(chr(10))}")
        for page in PAGES
        for text in [page.read_text(encoding="utf-8")]
        for block in pages.blocks(text)
        if not languages or block.language in languages
    ]


@pytest.mark.parametrize("page", PAGES, ids=pages.name_of)
def test_its_commands_print_what_it_shows(
    page: Path, golden: Callable[[Path, str], None], tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    text, examples = page.read_text(encoding="utf-8"), pages.files(pages.examples_of(page))
    golden(page, pages.refreshed(text, examples, folder))


@pytest.mark.parametrize("page", PAGES, ids=pages.name_of)
def test_its_blocks_are_of_known_languages(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = pages.blocks(text)
    assert {block.language for block in found} <= LANGUAGES
    # Each fence is one of a block that was read.
    assert text.count("```") == 2 * len(found)


@pytest.mark.parametrize("block", all_blocks("yaml"))
def test_job_files_are_right(block: pages.Block) -> None:
    """A block that names a file is a whole job file; without a name it is a part of one."""
    text = block.text
    if not block.name:
        keys = yaml.safe_load(text)
        if not {"command", "ddp", "script"} & set(keys):
            text += WHOLE
    render(resolve(load_job(text, block.name or "job.yaml").spec, generic.PROFILE))


@pytest.mark.parametrize("block", all_blocks("yml"))
def test_other_yaml_can_be_read(block: pages.Block) -> None:
    assert isinstance(yaml.safe_load(block.text), (dict, list))


@pytest.mark.parametrize("block", all_blocks("python"))
def test_python_compiles(block: pages.Block) -> None:
    compile(block.text, block.name or "block", "exec")


@pytest.mark.parametrize("block", all_blocks("bash", "shell"))
def test_bash_can_be_read(block: pages.Block) -> None:
    read = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
    assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.parametrize("block", all_blocks("console"))
def test_an_output_is_more_than_an_ellipsis(block: pages.Block) -> None:
    assert not re.search(rf"^\$ .*\n(?:{re.escape(pages.ELLIPSIS)}\n)+(?=\$ |\Z)", block.text, re.M)


def test_every_example_is_shown() -> None:
    for path in pages.EXAMPLES.rglob("*.*"):
        if path.suffix == ".pyc":
            continue
        page = pages.DOCS / path.parent.relative_to(pages.EXAMPLES)
        assert page.with_name(f"{page.name}.md").is_file(), path


def test_a_wrong_output_is_seen(tmp_path: Path) -> None:
    text = "```console\n$ echo one; echo two >&2\none\n```\n"
    now = pages.refreshed(text, {}, tmp_path)
    assert now == "```console\n$ echo one; echo two >&2\none\ntwo\n```\n"


@pytest.mark.parametrize(
    ("shown", "output", "same"),
    [
        ("a\n", "a\n", True),
        ("a\n...\nz\n", "a\nb\nc\nz\n", True),
        ("a\n...\n", "a\n", True),
        ("a\n...\nz\n", "a\nb\n", False),
        ("", "a\n", False),
    ],
)
def test_an_ellipsis_is_for_any_lines(shown: str, output: str, same: bool) -> None:
    assert pages.matches(shown, output) is same


def test_the_keys_of_parts_are_those_of_job_files() -> None:
    """Or a part would be read as something else."""
    assert {"command", "ddp", "script"} <= set(JobSpec.model_fields)
