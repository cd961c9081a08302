"""What a project has already: its program, its Python environment, its batch scripts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.files import read_bytes
from slurmgen.lint.inputs import NotABatchScript, decode, is_job_file, search
from slurmgen.script.heading import read_heading

if TYPE_CHECKING:
    from pathlib import Path

# In the order in which they are taken for the program.
_PROGRAMS = ("train.py", "main.py", "run.py", "finetune.py", "pretrain.py")
_FOLDERS = (".", "src", "scripts", "src/*")
_CONDA = ("environment.yml", "environment.yaml")
_CONDA_NAME = re.compile(r"^name:\s*[\"']?([\w.-]+)", re.MULTILINE)


class Environment(NamedTuple):
    """A key of `setup`, its value, and the file that says so."""

    key: str
    value: str
    origin: str


def program(folder: Path) -> str | None:
    """The training program, relative to `folder`; None where no name looks like one."""
    for name in _PROGRAMS:
        for where in _FOLDERS:
            for path in sorted(folder.glob(f"{where}/{name}")):
                return path.relative_to(folder).as_posix()
    return None


def environment(folder: Path) -> Environment | None:
    """How the program gets its packages: a uv project, a virtual environment, or conda's."""
    if (folder / "uv.lock").is_file():
        return Environment("uv", ".", "uv.lock")
    for name in (".venv", "venv", "env"):
        if (folder / name / "pyvenv.cfg").is_file():
            return Environment("venv", name, f"{name}/")
    for name in _CONDA:
        try:
            found = _CONDA_NAME.search((folder / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        if found is not None:
            return Environment("conda", found[1], name)
    return None


def batch_scripts(folder: Path) -> list[Path]:
    """The batch scripts below `folder` that slurmgen has not rendered."""
    scripts = []
    for path, problem in search(folder):
        if problem or is_job_file(str(path)):
            continue
        try:
            text = decode(read_bytes(path))
        except (OSError, NotABatchScript):
            continue
        if read_heading(text) is None:
            scripts.append(path)
    return scripts


def repository(folder: Path) -> Path:
    """Where hooks and workflows belong: the git repository around `folder`, else `folder`."""
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return folder


def free_name(folder: Path) -> str:
    """The stem of the job file: `job`, or another one where job.sbatch is somebody's script."""
    for stem in ("job", "train", "slurmgen-job"):
        present = (folder / f"{stem}.yaml").exists() or (folder / f"{stem}.sbatch").exists()
        if (folder / f"{stem}.yaml").exists() or not present:
            return stem
    return "slurmgen"
