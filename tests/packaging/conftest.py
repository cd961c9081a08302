"""The wheel and the sdist, each built once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.packaging.building import ROOT, build, run, unpacked

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("--sdist", ROOT, tmp_path_factory.mktemp("build") / "sdist")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("--wheel", ROOT, tmp_path_factory.mktemp("build") / "wheel")


@pytest.fixture(scope="session")
def wheel_of_sdist(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = unpacked(sdist, tmp_path_factory.mktemp("unpacked"))
    return build("--wheel", source, tmp_path_factory.mktemp("build") / "wheel")


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """That packages can be had: what installs dependencies is left out where they can't."""
    folder = tmp_path_factory.mktemp("index")
    try:
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "jinja2", cwd=folder)
    except AssertionError:
        pytest.skip("needs a package index, and none can be reached")
