"""What a compute node and a login node may lack."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCK = "import sys\nfor name in {names!r}: sys.modules[name] = None\n"


def run(code: str, *blocked: str) -> None:
    program = BLOCK.format(names=blocked) + code
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_launch_is_judged_without_torch() -> None:
    run(
        "from slurmgen.ddp import entry, identity, preflight, spawn, devices, failure\n"
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
        "import slurmgen.ddp.entry",
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
