"""However a script or a program grows, reading it grows with its length, and no faster.

Work is counted, not timed: the calls of Python and of C functions that lint and import make.
What a single call does inside C is not seen; `benchmarks/growth.py` times the same shapes.

`SLURMGEN_CHAOS=long` looks at larger sizes, and at many more mixtures of shapes.
"""

from __future__ import annotations

import contextlib
import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.importer.importer import NotImportable, import_script
from slurmgen.lint import engine, registry
from slurmgen.lint.job import load
from tests.property import shapes
from tests.work import calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
LONG = os.environ.get("SLURMGEN_CHAOS") == "long"
SIZES = (5_000, 15_000) if LONG else (1_000, 3_000)
SEED = 20_250
MIXTURES = 400 if LONG else 12
# Tables that double, and caps that are reached between the two sizes.
SLACK = 1.4
# What a call costs that has nothing to do with the size.
CONSTANT = 3_000

SCRIPT = shapes.BASH_HEAD + shapes.BASH_TAIL


def lint(text: str, folder: Path) -> None:
    outcome = engine.check(load("job.sbatch", text, folder=folder), registry.rules())
    for failure in outcome.failures:
        raise failure.error


def import_(text: str) -> None:
    with contextlib.suppress(NotImportable):
        import_script(text, name="job.sbatch")


def linted(shape: shapes.Shape, size: int, folder: Path) -> int:
    text = shape.text(size)
    if shape.language == "python":
        (folder / "train.py").write_text(text, encoding="utf-8")
        text = SCRIPT
    return calls(lambda: lint(text, folder))


def imported(shape: shapes.Shape, size: int, _: Path) -> int:
    text = shape.text(size)
    return calls(lambda: import_(text))


def mixtures(language: str) -> Iterator[shapes.Shape]:
    numbers = random.Random(SEED)
    return (shapes.mixed(language, numbers) for _ in range(MIXTURES))


def named(found: list[shapes.Shape]) -> list[Any]:
    return [pytest.param(shape, id=f"{shape.language}-{shape.name}") for shape in found]


SCRIPTS = [*shapes.single("bash"), *mixtures("bash")]
PROGRAMS = [*shapes.single("python"), *mixtures("python")]


@pytest.fixture(scope="module", autouse=True)
def _warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is imported and cached at first is no work of the first shape."""
    folder = tmp_path_factory.mktemp("warm")
    (folder / "train.py").write_text(shapes.PYTHON_HEAD + shapes.PYTHON_TAIL, encoding="utf-8")
    lint(SCRIPT, folder)
    import_(SCRIPT)


def check(work: Callable[[shapes.Shape, int, Path], int], shape: shapes.Shape, at: Path) -> None:
    said = []
    # Values may grow with each line up to a cap, which larger texts reach.
    for factor in (1, 8):
        small, large = (work(shape, factor * size, at) for size in SIZES)
        if large <= SLACK * small * SIZES[1] / SIZES[0] + CONSTANT:
            return
        said.append(f"{small:,} calls at {factor * SIZES[0]:,}, {large:,} at {factor * SIZES[1]:,}")
    pytest.fail("; ".join(said))


@pytest.mark.parametrize("shape", named([*SCRIPTS, *PROGRAMS]))
def test_lint_grows_with_the_length(shape: shapes.Shape, tmp_path: Path) -> None:
    check(linted, shape, tmp_path)


@pytest.mark.parametrize("shape", named(SCRIPTS))
def test_import_grows_with_the_length(shape: shapes.Shape, tmp_path: Path) -> None:
    check(imported, shape, tmp_path)
