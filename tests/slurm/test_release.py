"""Other versions of Slurm, unpacked beside the machine's own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from slurmgen.errors import UnavailableError, UsageError
from slurmgen.sandbox import release

if TYPE_CHECKING:
    from pathlib import Path


def test_a_version_that_debian_does_not_have() -> None:
    with pytest.raises(UsageError, match=r"'23\.02' is not a version of Slurm") as caught:
        release.unpacked("23.02")
    assert "20.11, 22.05, 24.11, 26.05" in caught.value.fix


def test_inside_it_nothing_is_entered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    outside = [sys.executable, "-m", "slurmgen.sandbox.release", "24.11", "--", "sinfo"]
    monkeypatch.delenv(release.ENTERED, raising=False)
    assert release.command("24.11", ["sinfo"]) == outside
    assert release.command("", ["sinfo"]) == ["sinfo"]
    monkeypatch.setenv(release.ENTERED, "24.11")
    assert release.command("24.11", ["sinfo"]) == ["sinfo"]


@pytest.mark.slurm
@pytest.mark.parametrize("version", ["20.11", "24.11"])
def test_a_sandbox_of_that_version(version: str, tmp_path: Path) -> None:
    try:
        release.unpacked(version)
    except UnavailableError as error:
        pytest.skip(str(error))
    script = (
        "from pathlib import Path; from slurmgen.sandbox import Sandbox\n"
        f"with Sandbox.up(name='release', directory=Path({str(tmp_path)!r})) as sandbox:\n"
        "    ran = sandbox.run(['srun', '--nodes=2', '--gres=gpu:1', 'scontrol', '--version'])\n"
        "    print(sandbox.version, ran.stdout.split())\n"
    )
    done = subprocess.run(
        release.command(version, [sys.executable, "-c", script]),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{version}.")
    assert done.stdout.count("'slurm-wlm'") == 2
