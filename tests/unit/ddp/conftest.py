"""Environments as Slurm really sets them, recorded on two nodes with four ranks each."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ENVIRONMENTS = Path(__file__).parent / "environments"
VERSIONS = sorted(path.name for path in ENVIRONMENTS.iterdir())

Recorded = Callable[[str], dict[str, str]]


@pytest.fixture(params=VERSIONS)
def recorded(request: pytest.FixtureRequest) -> Recorded:
    """`recorded("batchenv")`, `recorded("stepenv.5")`: the variables, on each Slurm version."""

    def read(name: str) -> dict[str, str]:
        lines = (ENVIRONMENTS / str(request.param) / name).read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    return read


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    """What the entrypoint has said since, line by line, without its name, the time and the rank.

    The rank is there once any test of this process has asked for it.
    """

    def read() -> list[str]:
        stamp = r"^slurmgen\.ddp \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: rank \d+)?: "
        return re.sub(stamp, "", capsys.readouterr().err, flags=re.MULTILINE).splitlines()

    return read
