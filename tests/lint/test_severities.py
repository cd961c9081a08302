"""An error only where the job would surely fail, hang or waste its GPUs; else a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurmgen.lint.job import load
from slurmgen.lint.rules import log_dir_missing
from tests.lint.asking import ALONE, NODES, ONE, severities

if TYPE_CHECKING:
    from pathlib import Path

COUNTLESS = NODES.replace("--ntasks-per-node=1", "--mem=0")
EXCLUSIVE = "#!/bin/bash\n#SBATCH --nodes=2 --exclusive --ntasks-per-node=1\n"
FROM_BATCH = "export RANK=$SLURM_PROCID MASTER_ADDR=a\n"


@pytest.mark.parametrize(
    ("rule", "text", "severity"),
    [
        # Given to sbatch, perhaps.
        ("env_var_unset", f"{ONE}i=$((SLURM_ARRAY_TASK_ID + 1))\n./a $i\n", "warning"),
        (
            "env_var_unset",
            f"{COUNTLESS}n=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))\n./a $n\n",
            "error",
        ),
        # Where sh is bash, it works.
        ("sh_shebang_bashism", "#!/bin/sh\n#SBATCH -n1\nsource env.sh\n", "warning"),
        # Three times in a hundred; four times in ten.
        ("port_out_of_range", f"{ONE}torchrun --master_port=$RANDOM a.py\n", "warning"),
        (
            "port_out_of_range",
            f"{ONE}torchrun --master_port=$((60000 + SLURM_JOB_ID % 10000)) a.py\n",
            "error",
        ),
        ("port_out_of_range", f"{ONE}torchrun --master_port=80 a.py\n", "error"),
        # A whole node may show its GPUs without a request.
        ("gpu_not_requested", f"{EXCLUSIVE}export NCCL_DEBUG=INFO\nsrun python a.py\n", "warning"),
        ("gpu_not_requested", f"{EXCLUSIVE}srun python a.py --device cuda\n", "error"),
        # What a program that is named at submission reads, nobody knows.
        ("rank_expanded_early", f'{NODES}{FROM_BATCH}srun python -u "$1"\n', "warning"),
        ("rank_expanded_early", f"{NODES}{FROM_BATCH}srun python -u a.py\n", "error"),
        # One GPU is number 0 where devices are confined, and never number 1.
        (
            "cuda_visible_hardcoded",
            f"{ALONE}export CUDA_VISIBLE_DEVICES=0\npython a.py\n",
            "warning",
        ),
        ("cuda_visible_hardcoded", f"{ALONE}export CUDA_VISIBLE_DEVICES=1\npython a.py\n", "error"),
    ],
)
def test_how_bad_it_is(rule: str, text: str, severity: str) -> None:
    assert severities(rule, text) == [severity]


@pytest.mark.parametrize(("slurm", "severity"), [(None, "warning"), ("22.05", "error")])
def test_a_missing_log_folder(slurm: str | None, severity: str, tmp_path: Path) -> None:
    text = ONE + "#SBATCH --output=nowhere-at-all/%j.out\n./a\n"
    job = load("job.sbatch", text, slurm=slurm, folder=tmp_path)
    given = [finding.severity or log_dir_missing.SEVERITY for finding in log_dir_missing.check(job)]
    assert given == [severity]
