"""Which scripts get keys for all they do, and which are kept as they stand."""

from __future__ import annotations

from typing import Any

import pytest

from slurmgen.importer import import_script
from slurmgen.source import parse_yaml

FOUR = "#SBATCH --nodes=1 --ntasks-per-node=4 --gres=gpu:4 --cpus-per-task=8\n"
ONE = "#SBATCH --gres=gpu:1 --cpus-per-task=8\n"
NODE = "#SBATCH --ntasks-per-node=1 --gres=gpu:4 --cpus-per-task=8\n"
TWO = "#SBATCH --nodes=2 --ntasks-per-node=4 --gres=gpu:4 --cpus-per-task=8\n"
TWO_NODES = "#SBATCH --nodes=2 --ntasks-per-node=1 --gres=gpu:4 --cpus-per-task=8\n"


def job(code: str, *, shebang: str = "#!/bin/bash\n") -> dict[str, Any]:
    imported = import_script(shebang + code, name="job.sbatch")
    return parse_yaml(imported.text, "job.yaml").data


@pytest.mark.parametrize(
    ("directives", "launch", "launcher", "command"),
    [
        (FOUR, "srun python train.py", "srun", "python train.py"),
        (FOUR, "srun -n 4 -c8 -K python train.py", "srun", "python train.py"),
        (FOUR, 'srun -n "$SLURM_NTASKS" a.out', "srun", "a.out"),
        (TWO, "srun --export=ALL --wait=0 python a.py '$x' | cat", None, None),
        (TWO, "srun --jobid $SLURM_JOB_ID python a.py", "srun", "python a.py"),
        (ONE, "srun python train.py", "plain", "python train.py"),
        (ONE, "python train.py", "plain", "python train.py"),
        (ONE, "FLAG=1 python train.py", None, None),
        (NODE, "python train.py", "plain", "python train.py"),
        (NODE, "torchrun --nproc-per-node 4 t.py -x", "torchrun", "python -u t.py -x"),
        (NODE, "python -m torch.distributed.run --nproc_per_node=gpu t.py", "torchrun",
         "python -u t.py"),
        (NODE, "torchrun --standalone --nproc_per_node=4 --no-python ./run", "torchrun", "./run"),
        (NODE, "torchrun --nproc_per_node=2 t.py", None, None),
        (NODE, "torchrun --nproc_per_node=4 --max-restarts=3 t.py", None, None),
        (TWO_NODES, "torchrun --nnodes=2 --nproc_per_node=4 t.py", None, None),
        (TWO_NODES, "srun torchrun --nnodes=2 --nproc_per_node=4 t.py", "torchrun",
         "python -u t.py"),
        (TWO_NODES, "srun torchrun --nnodes=1 --nproc_per_node=4 t.py", None, None),
        (TWO_NODES, "srun torchrun --nnodes=2 --node_rank=$SLURM_NODEID --nproc_per_node=4 t.py",
         None, None),
        (TWO_NODES, "srun python t.py", None, None),
        (TWO, "python train.py", None, None),
        (FOUR, "mpirun -n 4 ./prog", None, None),
        (FOUR, "srun -n 2 python train.py", None, None),
        (FOUR, "srun --label python train.py", None, None),
        (FOUR, "srun --gres=gpu:1 python train.py", None, None),
        (FOUR, "srun $OPTIONS python train.py", None, None),
        (FOUR, "srun python train.py --rank $SLURM_PROCID", None, None),
        (FOUR, "srun python train.py --name $(date +%s)", None, None),
        (ONE, "srun python train.py --name $(date +%s)", "plain",
         "python train.py --name $(date +%s)"),
        (FOUR, "srun python train.py > log", None, None),
        (FOUR, "srun python train.py $MASTER_PORT", None, None),
        (NODE, "torchrun --nproc_per_node=4 t.py --seed $RANDOM", None, None),
        (NODE, "export MASTER_PORT=1\ntorchrun --nproc_per_node=4 t.py $MASTER_PORT", None, None),
        (FOUR, "export MASTER_PORT=1\nexport URL=tcp://a:$MASTER_PORT\nsrun ./a", None, None),
        (ONE, "python t.py --threads $OMP_NUM_THREADS", None, None),
        (ONE, "python t.py --tasks ${SLURM_NTASKS:-3}", None, None),
        (NODE, "python t.py --tasks ${SLURM_NTASKS:-3}", "plain",
         "python t.py --tasks ${SLURM_NTASKS:-3}"),
        (ONE, "printf 'a\n# b'\npython t.py", "plain", "python t.py"),
        (ONE, "python train.py | tee log", None, None),
        (ONE, "set -o pipefail\npython train.py | tee log", "plain", "python train.py | tee log"),
        (FOUR, "srun python train.py &\nwait", None, None),
        (FOUR, "srun python a.py\nsrun python b.py", None, None),
        (FOUR, "lr=3\nsrun python train.py $lr", None, None),
        (FOUR, "lr=3\nexport lr\nsrun python train.py $lr", None, None),
        (FOUR, "export lr=3\nsrun python train.py $lr", "srun", "python train.py $lr"),
        (FOUR, "srun python train.py $1", None, None),
        (FOUR, "run() { python a.py; }\nsrun run", None, None),
        (ONE, "python train.py\necho done", None, None),
        (ONE, "cd x && python train.py", None, None),
        (ONE, "if true; then python train.py; fi", None, None),
        (ONE, "exec python train.py", None, None),
        (ONE, "snakemake --jobs 4", None, None),
        (ONE, "task=3\npython train.py", None, None),
        (ONE, "N=1\nif x; then N=2; fi\npython train.py $N", None, None),
        ("#SBATCH --gres=gpu:1\n", "python train.py", None, None),
        ("#SBATCH -n 4 -N 2 -c 1\n", "srun ./prog", None, None),
        ("#SBATCH -n 4 -N 2 -c 1 --ntasks-per-node=2\n", "srun ./prog", "srun", "./prog"),
        ("#SBATCH -n 4 -N 1 -c 1\n", "srun ./prog", "srun", "./prog"),
        ("#SBATCH -n 4 -c 1\n", "srun ./prog", None, None),
        ("#SBATCH -c 4 --gpus=2\n", "python train.py", None, None),
        ("#SBATCH -c 4 -N 1 --exclusive\n", "srun -c 4 ./prog", None, None),
    ],
)  # fmt: skip
def test_launches(directives: str, launch: str, launcher: str | None, command: str | None) -> None:
    found = job(f"{directives}{launch}\n")
    assert (found.get("launcher"), found.get("command")) == (launcher, command)
    assert ("script" in found) == (launcher is None)
    if launcher is None:
        assert found["script"].endswith(f"{launch}\n")


@pytest.mark.parametrize(
    "shebang",
    ["#!/bin/bash -l\n", "#!/bin/sh\n", "#!/bin/bash -e\n", "#!/bin/zsh\n", "#! /bin/bash\n"],
)
def test_another_interpreter_is_kept(shebang: str) -> None:
    found = job(f"{FOUR}srun python train.py\n", shebang=shebang)
    assert found["script"] == f"{shebang}srun python train.py\n"
    assert found["ntasks_per_node"] == "4"


def test_what_fails_without_harm_does_so_in_the_job() -> None:
    assert job(f"{ONE}nvidia-smi\npython t.py\n")["setup"] == {"commands": "set +e\nnvidia-smi\n"}
    assert job(f"{ONE}set -e\nnvidia-smi\npython t.py\n")["setup"] == {"commands": "nvidia-smi\n"}
    assert job(f"{ONE}echo a\npython t.py\n")["setup"] == {"commands": "echo a\n"}


def test_the_order_of_set_up_is_kept() -> None:
    found = job(f"{ONE}export A=1 PYTHONPATH=src\nmodule load cuda\npython t.py\n")
    # The module may want to add to the path.
    assert found["setup"] == {"commands": "set +e\nmodule load cuda\n"}
    assert found["env"] == {"A": "1", "PYTHONPATH": "src"}
    found = job(f"{ONE}export A=1\nmodule load cuda\npython t.py\n")
    assert found["setup"] == {"modules": ["cuda"]}
    found = job(f"{ONE}source v/bin/activate\nmodule load cuda\npython t.py\n")
    assert found["setup"] == {"venv": "v", "commands": "set +e\nmodule load cuda\n"}


def test_the_job_has_the_name_that_slurm_gives_it() -> None:
    assert job(f"{ONE}python t.py\n")["job_name"] == "job.sbatch"
    assert "job_name" not in job(f"{ONE}./run\n")


def test_every_variable_of_a_rank_is_kept_or_set() -> None:
    code = f"{FOUR}export MASTER_PORT=$((12000 + SLURM_JOB_ID % 9))\nsrun python t.py\n"
    assert job(code)["command"] == (
        "export MASTER_PORT=$((12000 + SLURM_JOB_ID % 9))\npython t.py\n"
    )
    for line in (
        "export RANK=$SLURM_PROCID",
        "export MASTER_PORT=$RANDOM",
        "export MASTER_ADDR=$(x)",
    ):
        assert "script" in job(f"{FOUR}{line}\nsrun python t.py\n")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("--requeue", "--no-requeue"),
        ("--exclusive", "--oversubscribe"),
        ("--signal=B:USR1@60", "--signal=TERM"),
        ("--threads-per-core=1", "--extra-node-info=1:1"),
        ("--time=60", "--time=90m"),
    ],
)
def test_what_another_directive_changes_stays_behind_it(first: str, second: str) -> None:
    found = job(f"#SBATCH {first}\n#SBATCH --ntasks=1\n#SBATCH {second}\n./run\n")
    assert found == {"ntasks": "1", "script": f"#SBATCH {first}\n#SBATCH {second}\n./run\n"}
