"""Every command that README prints, in order, in a new environment with the wheel alone.

Each block is typed into one Bash, in a folder with the files it speaks of. Where README shows what
a command prints, that is what it prints. Blocks that speak of a Slurm that is there get one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.pages import matches
from tests.packaging.building import ROOT, install

pytestmark = [pytest.mark.xdist_group("packaging"), pytest.mark.slurm]

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
SCRIPT = re.findall(r"^```bash\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[0]

PROGRAM = "print('trained')\n"
JOB = re.findall(r"^```yaml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[0]
FILES = {"train.py": PROGRAM, "train.sbatch": SCRIPT, "job.yaml": JOB}


class Setting(NamedTuple):
    """What stands around a block, by the first command of it.

    before: Bash that is run first. status: of a command that does not end with 0.
    """

    before: str = ""
    status: tuple[tuple[str, int], ...] = ()


SETTINGS = {
    "slurmgen render job.yaml | grep -E '^(#SBATCH|srun)'": Setting(),
    "slurmgen render job.yaml > job.sbatch": Setting(
        before='eval "$(slurmgen sandbox up --name site --nodes 2 --gpus 4)"',
        status=(("slurmgen lint train.sbatch", 1),),
    ),
}


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(wheel, tmp_path_factory.mktemp("readme") / "venv")


def commands(block: str) -> list[tuple[str, str]]:
    """Each command, without the remark behind it, and what is shown below it."""
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    return [(re.sub(r" +# .*", "", command), shown) for command, shown in found]


def first(block: str) -> str:
    return commands(block)[0][0]


def test_every_block_is_known() -> None:
    assert {first(block) for block in BLOCKS} == SETTINGS.keys()


@pytest.mark.parametrize("block", BLOCKS, ids=first)
def test_a_block(block: str, programs: Path, tmp_path: Path) -> None:
    setting = SETTINGS[first(block)]
    project = tmp_path / "project"
    project.mkdir()
    for name, text in FILES.items():
        (project / name).write_text(text)
    lines = [setting.before]
    for command, _ in commands(block):
        lines += ["echo @@@", command, 'echo "@@@$?"']
    lines += ["for name in default site; do slurmgen sandbox down --name $name; done"]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=project,
        env=environment(programs, tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    parts = re.findall(r"^@@@\n(.*?)^@@@(\d+)\n", done.stdout, re.MULTILINE | re.DOTALL)
    assert len(parts) == len(commands(block)), done.stdout
    for (command, shown), (output, status) in zip(commands(block), parts, strict=True):
        assert int(status) == dict(setting.status).get(command, 0), f"{command}\n{output}"
        if shown:
            assert matches(spaced(shown), spaced(output)), f"{command}\n{output}"


def environment(programs: Path, folder: Path) -> dict[str, str]:
    """That of somebody who has just logged in, with the wheel on PATH."""
    home = folder / "home"
    home.mkdir()
    kept = {k: os.environ[k] for k in ("LANG", "TMPDIR", "SSL_CERT_FILE") if k in os.environ}
    usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    path = [str(programs), usual]
    tools = {Path(shutil.which(name) or programs).parent for name in ("git", "sbatch")}
    return {
        **kept,
        "HOME": str(home),
        "USER": "me",
        "SHELL": "/bin/bash",
        "COLUMNS": "100",
        "PATH": os.pathsep.join([*path, *map(str, tools)]),
    }


def spaced(text: str) -> str:
    """Columns by two spaces: how wide one is depends on rows that README leaves out."""
    return re.sub(r"(?<=\S) {2,}", "  ", text)
