"""What single rules say of short scripts: a head, and a body that starts on line 5."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from slurmgen.lint.job import load

if TYPE_CHECKING:
    from pathlib import Path

# Two nodes of four GPUs with a task for each, with a task for each node, and one node.
TASKS = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n"
NODES = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\n"
ONE = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --gres=gpu:2\n"
ALONE = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --gres=gpu:1\n"
WHOLE = TASKS.replace("--nodes=2", "--nodes=2 --exclusive")
ARRAY = "#!/bin/bash\n#SBATCH --array=0-9\n#SBATCH --ntasks=1\n#SBATCH --gres=gpu:1\n"


def found(
    rule: str, text: str, folder: Path | None = None, *, slurm: str | None = None
) -> list[int | str]:
    """The lines on which a rule finds something; those of a program as `train.py:3`."""
    module = import_module(f"slurmgen.lint.rules.{rule}")
    job = load("job.sbatch", text, slurm=slurm, folder=folder)
    lines: list[int | str] = []
    for finding in module.check(job):
        name = finding.place.path and finding.place.path.rsplit("/", 1)[-1]
        lines.append(f"{name}:{finding.place.line}" if name else finding.place.line)
    return lines


def severities(rule: str, text: str) -> list[str]:
    """How bad a rule says it is."""
    module = import_module(f"slurmgen.lint.rules.{rule}")
    findings = module.check(load("job.sbatch", text))
    return [finding.severity or module.SEVERITY for finding in findings]


def in_python(rule: str, text: str, program: str, folder: Path) -> list[int | str]:
    """The same, with a train.py beside the script."""
    (folder / "train.py").write_text(program, encoding="utf-8")
    return found(rule, text, folder)
