"""slurmgen import on the command line."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from slurmgen.cli.commands import import_script as verb
from slurmgen.errors import EXIT_USAGE, UsageError

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = b"#!/bin/bash\n#SBATCH --gpus=8\n#SBATCH -p gpu\nsrun python train.py\n"
JOB = "partition: gpu\nscript: |\n  #SBATCH --gpus=8\n  srun python train.py\n"


def test_the_job_file_is_the_result(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "job.sbatch"
    path.write_bytes(SCRIPT)
    assert verb.run(str(path)) == 0
    out, err = capfdbinary.readouterr()
    assert out.decode() == JOB
    assert err.decode() == (
        f"{path}:2: no key says --gpus=8\n{path}:4: kept as it stands from here, under "
        "`script`: there are directives without keys\n"
    )
    assert path.read_bytes() == SCRIPT


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    script = b"#!/bin/bash\n#SBATCH -c 4\npython train.py\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(script)))
    assert verb.run("-") == 0
    out, err = capfdbinary.readouterr()
    assert out == b"job_name: sbatch\ncpus_per_task: 4\nlauncher: plain\ncommand: python train.py\n"
    assert err == b""


def test_fix_mends_before_it_imports(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "job.sbatch"
    path.write_bytes(SCRIPT.replace(b"\n", b"\r\n"))
    assert verb.run(str(path), fix=True) == 0
    assert "script" in capfdbinary.readouterr().out.decode()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a batch script: it is empty"),
        (b"\n \n", "not a batch script: it is empty"),
        (b"#!/bin/bash\0", "not a batch script: it holds a NUL byte, and is no text"),
        (b"#!/bin/bash\n\xff\n", "byte 0xff in line 2 is not UTF-8 text"),
        (b"nodes: 2\n", "not a batch script: it has neither a first line with #!"),
        (b"#!/bin/bash\n" + b"a" * 4_200_000, "it is larger than sbatch takes, which is 4 MiB"),
        (None, "No such file or directory"),
        ("folder", "Is a directory"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, content: bytes | str | None, reason: str) -> None:
    path = tmp_path / "job.sbatch"
    if isinstance(content, str):
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        verb.run(str(path))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == EXIT_USAGE
    assert not caught.value.fix
