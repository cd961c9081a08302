"""What a compute node and a login node may lack."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = "import sys\nfor name in {names!r}: sys.modules[name] = None\n"


def run(code: str, *blocked: str) -> None:
    program = BLOCK.format(names=blocked) + code
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_launch_is_judged_without_torch() -> None:
    run(
        "from slurmgen.ddp import failure\n"
        "from slurmgen.ddp.launch import devices, entry, identity, preflight, spawn\n"
        "assert not [m for m in sys.modules if m.partition('.')[0] == 'torch'"
        " and sys.modules[m] is not None]",
        "torch",
    )


@pytest.mark.torch
def test_nothing_but_torch_is_needed() -> None:
    run(
        "import warnings; warnings.simplefilter('ignore')\n"
        "from slurmgen import ddp\n"
        "[getattr(ddp, name) for name in ddp.__all__]\n"
        "import slurmgen.ddp.launch.entry",
        "pydantic",
        "jinja2",
        "typer",
        "rich",
        "yaml",
    )


def test_names() -> None:
    from slurmgen import ddp

    assert dir(ddp) == ddp.__all__
    with pytest.raises(AttributeError, match="no attribute 'initialise'"):
        ddp.initialise  # noqa: B018


def test_no_wait_is_counted_by_a_clock_that_may_jump() -> None:
    package = Path(__file__).parents[3] / "slurmgen/ddp"
    asked = {
        f"{path.name}: {ast.unparse(node)}"
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"time.time", "datetime.now"}
    }
    # For the file of the usage: when the run was.
    assert asked == {"usage.py: datetime.now"}
