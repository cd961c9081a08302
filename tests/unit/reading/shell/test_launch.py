"""Wrappers peeled off: what runs in the end, where, and what it sees."""

from __future__ import annotations

import pytest

from slurmgen.reading.shell.evaluate import evaluate
from slurmgen.reading.shell.launch import Launch, launches
from slurmgen.reading.shell.text import ShellText


def read(text: str) -> list[Launch]:
    return list(launches(evaluate(ShellText.whole(text))))


def training(text: str) -> Launch:
    (launch,) = [launch for launch in read(text) if launch.is_training]
    return launch


@pytest.mark.parametrize(
    ("text", "wrappers", "where"),
    [
        ("python train.py", (), "batch"),
        ("python -u train.py --lr 1", (), "batch"),
        ("/opt/env/bin/python3.11 train.py", (), "batch"),
        ("$CONDA_PREFIX/bin/python train.py", (), "batch"),
        ("${PYTHON:-python} train.py", (), "batch"),
        ("./train.py --x", (), "batch"),
        ("srun -n4 -c 2 --gres=gpu:4 python train.py", ("srun",), "task"),
        ("srun --ntasks 4 --label -K1 python train.py", ("srun",), "task"),
        ("srun --unbuffered -- python train.py", ("srun",), "task"),
        ("srun $OPTS python train.py", ("srun",), "task"),
        ("exec srun python train.py", ("exec", "srun"), "task"),
        ("time nohup nice -n 5 python train.py &", ("time", "nohup", "nice"), "batch"),
        ("timeout -s TERM 23h python train.py", ("timeout",), "batch"),
        ("env -u B A=1 python train.py", ("env",), "batch"),
        ("srun numactl --cpunodebind=0 python train.py", ("srun", "numactl"), "task"),
        ("srun bash -c 'python train.py'", ("srun", "bash"), "task"),
        ('srun bash -lc "cd x && python train.py"', ("srun", "bash"), "task"),
        ("srun bash -euo pipefail -c 'python train.py'", ("srun", "bash"), "task"),
        ("srun bash <<'EOF'\npython train.py\nEOF\n", ("srun", "bash"), "task"),
        ("bash <<EOF\npython train.py\nEOF\n", ("bash",), "batch"),
        ("srun apptainer exec --nv -B /a:/b x.sif python train.py", ("srun", "apptainer"), "task"),
        ("singularity run --nv --env A=1 x.sif python train.py", ("singularity",), "batch"),
        ("conda run -n env --no-capture-output python train.py", ("conda run",), "batch"),
        ("uv run python train.py", ("uv run",), "batch"),
        ("torchrun --nproc_per_node 4 train.py", ("torchrun",), "batch"),
        ("python -m torch.distributed.run --nproc-per-node=4 train.py", ("torchrun",), "batch"),
        ("accelerate launch --multi_gpu --num_processes 8 train.py", ("accelerate",), "batch"),
        ("deepspeed --num_gpus 8 train.py --deepspeed", ("deepspeed",), "batch"),
        ("srun torchrun $ARGS train.py", ("srun", "torchrun"), "task"),
        ("mpirun -np 4 --mca btl self -x PATH python train.py", ("mpirun",), "task"),
        ('CMD="torchrun --nproc_per_node=4 train.py"\nsrun $CMD', ("srun", "torchrun"), "task"),
        ("run() { srun python train.py; }\nrun", ("srun",), "task"),
    ],
)
def test_peeled(text: str, wrappers: tuple[str, ...], where: str) -> None:
    launch = training(text)
    assert (launch.wrappers, launch.where) == (wrappers, where)
    assert launch.python is not None
    assert launch.python.endswith("train.py")
    assert launch.program == "python"


def test_a_module() -> None:
    assert training("srun python -m pkg.train --x").module == "pkg.train"
    assert training("torchrun -m pkg.train").module == "pkg.train"


@pytest.mark.parametrize(
    "text", ["python -m pip install x", "python -c 'print(1)'", "hostname", "srun nvidia-smi"]
)
def test_what_is_no_training(text: str) -> None:
    assert not any(launch.is_training for launch in read(text))


def test_options_of_a_step() -> None:
    step = training("srun -N 2 -n8 --cpus-per-task=$C --tasks-per-node=4 python train.py").step
    assert step is not None
    assert {name: word.text for name, word in step.options.items()} == {
        "nodes": "2",
        "ntasks": "8",
        "cpus-per-task": "$C",
        "ntasks-per-node": "4",
    }


def test_options_of_a_launcher() -> None:
    launcher = training("torchrun --nnodes 2 --node-rank=$R --standalone train.py").launcher
    assert launcher is not None
    assert {name: word.text for name, word in launcher.options.items()} == {
        "nnodes": "2",
        "node_rank": "$R",
        "standalone": "",
    }


def test_who_expands_what() -> None:
    quoted = training("srun bash -c 'RANK=$SLURM_PROCID python train.py'")
    assert [p.where for p in quoted.environment["RANK"].value.variables()] == ["task"]
    double = training('srun bash -c "RANK=$SLURM_PROCID python train.py"')
    assert [p.where for p in double.environment["RANK"].value.variables()] == ["batch"]
    escaped = training('srun bash -c "RANK=\\$SLURM_PROCID python train.py"')
    assert [p.where for p in escaped.environment["RANK"].value.variables()] == ["task"]
    exported = training("export RANK=$SLURM_PROCID\nsrun bash -c 'python train.py $RANK'")
    assert [p.where for w in exported.words for p in w.variables()] == ["batch"]


def test_the_environment_that_srun_lets_through() -> None:
    text = "export A=1 B=2\nsrun --export=A python train.py"
    assert set(training(text).environment) == {"A"}
    assert set(training(text.replace("=A ", "=ALL,A=3 ")).environment) == {"A", "B"}


def test_a_nested_srun() -> None:
    steps = [
        launch.step
        for launch in read("srun -n1 bash -c 'srun -n2 hostname'")
        if launch.program == "hostname"
    ]
    assert steps[0] is not None
    assert steps[0].nested


@pytest.mark.parametrize(
    ("text", "python", "module"),
    [
        ("srun python3 -m slurmgen.ddp train.py --lr 1", "train.py", None),
        ("srun python -u -m slurmgen.ddp src/train.py", "src/train.py", None),
        ("srun python -m slurmgen.ddp my.train:main --lr 1", None, "my.train"),
        ("srun uv run python -m slurmgen.ddp train.py", "train.py", None),
        ("torchrun --nproc_per_node 4 -m slurmgen.ddp train.py", "train.py", None),
        ("python -m slurmgen.ddp", None, "slurmgen.ddp"),
    ],
)
def test_what_the_entrypoint_runs(text: str, python: str | None, module: str | None) -> None:
    launch = training(text)
    assert (launch.python, launch.module) == (python, module)
    assert launch.entrypoint == (module != "slurmgen.ddp")
