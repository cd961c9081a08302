"""The page on five mistakes: its wrong program and its right one, each as two ranks."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.torch.conftest import Ranks

pytestmark = pytest.mark.torch

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples" / "entrypoint" / "mistakes"


def start(ranks: Ranks, program: str, port: int, step: Callable[..., dict[str, str]]) -> None:
    shutil.copy(FOLDER / program, ranks.folder)
    for rank in range(2):
        ranks.start("-m", "slurmgen.ddp", program, **step(rank, 2, port, SLURM_CPUS_PER_TASK="2"))


def test_the_wrong_one_is_told_while_it_trains(
    ranks: Ranks,
    port: int,
    step: Callable[..., dict[str, str]],
    golden: Callable[[Path, str], None],
) -> None:
    start(ranks, "wrong.py", port, step)
    ended = ranks.end()
    assert [one.code for one in ended] == [0, 0], ended
    # Without the time, the folder, and which rank was the first to say it.
    said = "".join(one.err for one in ended).replace(f"{ranks.folder}/", "")
    lines = re.findall(r"^slurmgen\.ddp \S+ \S+ rank \d: (warning: .*\n)", said, re.M)
    golden(FOLDER / "wrong.log", "".join(sorted(lines)))


def test_the_right_one_trains_and_hears_nothing(
    ranks: Ranks, port: int, step: Callable[..., dict[str, str]]
) -> None:
    start(ranks, "right.py", port, step)
    ended = ranks.end()
    assert [one.code for one in ended] == [0, 0], ended
    assert [len(re.findall(r"^epoch \d: loss", one.out, re.M)) for one in ended] == [3, 0]
    assert not any("warning:" in one.err for one in ended), ended
    assert (ranks.folder / "model.pt").is_file()
