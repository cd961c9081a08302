"""Which scripts get keys for all they do, and which are kept as they stand."""

from __future__ import annotations

import re
from typing import Any

import pytest

from slurmgen.importer import import_script
from slurmgen.jobfile.source import parse_yaml

FOUR = "#SBATCH --nodes=1 --ntasks-per-node=4 --gres=gpu:4 --cpus-per-task=8\n"
ONE = "#SBATCH --gres=gpu:1 --cpus-per-task=8\n"
NODE = "#SBATCH --ntasks-per-node=1 --gres=gpu:4 --cpus-per-task=8\n"
TWO = "#SBATCH --nodes=2 --ntasks-per-node=4 --gres=gpu:4 --cpus-per-task=8\n"
TWO_NODES = "#SBATCH --nodes=2 --ntasks-per-node=1 --gres=gpu:4 --cpus-per-task=8\n"
OF_TWO = "--nnodes=2 --nproc_per_node=4"


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
        (ONE, "FLAG=1 python train.py", "plain", "FLAG=1 python train.py"),
        (NODE, "python train.py", "plain", "python train.py"),
        (NODE, "torchrun --nproc-per-node 4 t.py -x", "torchrun", "python -u t.py -x"),
        (NODE, "python -m torch.distributed.run --nproc_per_node=gpu t.py", "torchrun",
         "python -u t.py"),
        (NODE, "torchrun --standalone --nproc_per_node=4 --no-python ./run", "torchrun", "./run"),
        (NODE, "torchrun --nproc_per_node=2 t.py", "plain",
         "unset OMP_NUM_THREADS\ntorchrun --nproc_per_node=2 t.py\n"),
        (NODE, "export OMP_NUM_THREADS=2\ntorchrun --nproc_per_node=4 --max-restarts=3 t.py",
         "plain", "torchrun --nproc_per_node=4 --max-restarts=3 t.py"),
        (NODE, "torchrun --nproc_per_node=4 --master_port=29501 t.py", "plain",
         "unset OMP_NUM_THREADS\ntorchrun --nproc_per_node=4 --master_port=29501 t.py\n"),
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
        (FOUR, "srun --label python train.py", "srun", "python train.py"),
        (FOUR, "srun --gres=gpu:1 python train.py", None, None),
        (FOUR, "srun $OPTIONS python train.py", None, None),
        (FOUR, "srun python train.py --rank $SLURM_PROCID", None, None),
        (FOUR, "srun python train.py --name $(date +%s)", None, None),
        (ONE, "srun python train.py --name $(date +%s)", "plain",
         "python train.py --name $(date +%s)"),
        (FOUR, "srun python train.py > log", None, None),
        (FOUR, "srun python train.py $MASTER_PORT", None, None),
        (NODE, "torchrun --nproc_per_node=4 t.py --seed $RANDOM", "plain",
         "unset OMP_NUM_THREADS\ntorchrun --nproc_per_node=4 t.py --seed $RANDOM\n"),
        (NODE, "export MASTER_PORT=1\ntorchrun --nproc_per_node=4 t.py $MASTER_PORT", "plain",
         "unset OMP_NUM_THREADS\ntorchrun --nproc_per_node=4 t.py $MASTER_PORT\n"),
        (FOUR, "export MASTER_PORT=1\nexport URL=tcp://a:$MASTER_PORT\nsrun ./a", None, None),
        (ONE, "python t.py --threads $OMP_NUM_THREADS", None, None),
        (ONE, "python t.py --tasks ${SLURM_NTASKS:-3}", None, None),
        (NODE, "python t.py --tasks ${SLURM_NTASKS:-3}", "plain",
         "python t.py --tasks ${SLURM_NTASKS:-3}"),
        (ONE, "printf 'a\n# b'\npython t.py", "plain", "python t.py"),
        (ONE, "python train.py | tee log", "plain",
         "set +eo pipefail\npython train.py | tee log\n"),
        (ONE, "set -o pipefail\npython train.py | tee log", "plain", "python train.py | tee log"),
        (FOUR, "srun python train.py &\nwait", None, None),
        (FOUR, "srun python a.py\nsrun python b.py", None, None),
        (FOUR, "lr=3\nsrun python train.py $lr", "srun", "export -n lr\npython train.py $lr\n"),
        (FOUR, "lr=(3 4)\nsrun python train.py ${lr[0]}", None, None),
        (FOUR, "lr=3\nexport lr\nsrun python train.py $lr", "srun", "python train.py $lr"),
        (FOUR, "export lr=3\nsrun python train.py $lr", "srun", "python train.py $lr"),
        (FOUR, "srun python train.py $1", "srun",
         'eval "set -- $ARGUMENTS"; export -n ARGUMENTS\npython train.py $1\n'),
        (FOUR, "cat $0\nsrun python train.py", None, None),
        (FOUR, "run() { python a.py; }\nsrun run", None, None),
        (ONE, "python train.py\necho done", "plain", "set +e\npython train.py\necho done\n"),
        (ONE, "set -e\npython train.py\necho done", "plain", "python train.py\necho done\n"),
        (FOUR, "srun python train.py\necho done", None, None),
        (ONE, "python train.py\nsbatch next.sbatch", None, None),
        (ONE, "python train.py\n./run", None, None),
        (ONE, "python a.py &\nwait $!", "plain", "set +e\npython a.py &\nwait $!\n"),
        (ONE, "set -e\ntmp=$(mktemp -d)\ntrap 'rm -r $tmp' EXIT\npython a.py", "plain",
         "export -n tmp\ntrap 'rm -r $tmp' EXIT\npython a.py\n"),
        (ONE, "trap 'echo late' USR1\npython a.py", None, None),
        ("#SBATCH --gres=gpu:1 --signal=USR1@60\n", "python a.py", None, None),
        ("#SBATCH --gres=gpu:1 --signal=USR1@60\n", "srun python a.py", "plain", "python a.py"),
        (ONE, "set -e\nrates=(1 2)\necho go\nfor r in ${rates[@]}; do srun python a.py $r; done",
         "plain", "rates=(1 2)\necho go\nfor r in ${rates[@]}; do python a.py $r; done\n"),
        (FOUR, "srun bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS python a.py'", "srun",
         "python a.py"),
        (FOUR, "srun bash -c 'export RANK=$SLURM_PROCID A=1; exec python a.py'", "srun",
         "set +e\nexport A=1; exec python a.py\n"),
        (FOUR, "srun bash -c 'RANK=$SLURM_LOCALID python a.py'", "srun",
         "RANK=$SLURM_LOCALID python a.py"),
        (FOUR, 'srun bash -c "RANK=$SLURM_PROCID python a.py"', None, None),
        (FOUR, "srun bash <<'EOF'\nexport RANK=$SLURM_PROCID\npython a.py\nEOF", "srun",
         "python a.py"),
        (TWO_NODES, f"srun bash -c 'torchrun {OF_TWO} --node_rank $SLURM_NODEID t'", "torchrun",
         "python -u t"),
        (TWO_NODES, "srun bash -c 'accelerate launch --num_processes 8 t.py'", "spawn",
         "accelerate launch --num_processes 8 t.py"),
        (TWO_NODES, "srun torchrun --nnodes=2 --nproc_per_node=4 --master_addr=localhost t.py",
         None, None),
        (FOUR, "srun -n 1 -N 1 tar xf a.tar\nsrun python t.py", "srun", "python t.py"),
        (FOUR, "srun -n 1 -N 1 python a.py\nsrun python t.py", None, None),
        (ONE, "cd x && python train.py", "plain", "set +e\ncd x && python train.py\n"),
        (ONE, "if true; then python train.py; fi", "plain",
         "set +e\nif true; then python train.py; fi\n"),
        (ONE, "exec python train.py", "plain", "python train.py"),
        (ONE, "snakemake --jobs 4", None, None),
        (ONE, "task=3\npython train.py", None, None),
        (ONE, "N=1\nif x; then N=2; fi\npython train.py $N", "plain",
         "export -n N\npython train.py $N\n"),
        ("#SBATCH --gres=gpu:1\n", "python train.py", "plain", "python train.py"),
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
    ["#!/bin/bash -l\n", "#!/bin/sh\n", "#!/bin/bash --norc\n", "#!/bin/zsh\n"],
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


PORT = "$((12000 + SLURM_JOB_ID % 9))"


def test_every_variable_of_a_rank_is_kept_or_set() -> None:
    assert job(f"{FOUR}export MASTER_PORT={PORT}\nsrun python t.py\n")["command"] == "python t.py"
    for line, used in (
        (f"export MASTER_PORT={PORT}", " --port $MASTER_PORT"),
        # Faults: one port for all jobs, one that connections take, digits read as octal.
        ("export MASTER_PORT=29500", ""),
        ("export MASTER_PORT=$((30000 + SLURM_JOB_ID % 9999))", ""),
        ("export MASTER_PORT=$((9000 + ${SLURM_JOB_ID: -4}))", ""),
        ("export WORLD_SIZE=$((SLURM_NNODES * 2))", ""),
    ):
        found = job(f"{FOUR}{line}\nsrun python t.py{used}\n")
        assert found["command"] == f"{line}\npython t.py{used}\n"
    for line in (
        "export RANK=$SLURM_PROCID",
        "export MASTER_PORT=$RANDOM\nsrun python a.py $MASTER_PORT",
        "export MASTER_ADDR=$(x)",
        "export MASTER_ADDR=$(hostname -I)",
        "export LOCAL_RANK=0 MASTER_PORT=$SLURM_PROCID",
    ):
        assert "script" in job(f"{FOUR}{line}\nsrun python t.py\n")


FIRST = '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'


@pytest.mark.parametrize(
    "lines",
    [
        f"export MASTER_ADDR={FIRST}",
        f"export MASTER_ADDR={FIRST} MASTER_PORT=$(expr 20000 + $SLURM_JOB_ID % 9999)",
        f"MASTER_ADDR={FIRST}\nMASTER_PORT={PORT}\nexport MASTER_ADDR MASTER_PORT",
        f"head={FIRST}\nexport MASTER_ADDR=$head",
        "export MASTER_ADDR=$(hostname) WORLD_SIZE=$SLURM_NTASKS",
    ],
)
def test_what_the_launch_block_sets_is_left_to_it(lines: str) -> None:
    imported = import_script(
        f"#!/bin/bash\n#SBATCH -n 8\n{TWO}{lines}\nsrun python t.py\n", name="job.sbatch"
    )
    found = parse_yaml(imported.text, "job.yaml").data
    assert found["command"] == "python t.py"
    assert "env" not in found
    assert any("MASTER_ADDR is set by the job's launch block" in n.text for n in imported.notes)


def test_the_first_node_may_be_shown() -> None:
    code = f"{TWO}export MASTER_ADDR={FIRST}\necho $MASTER_ADDR\nsrun python t.py\n"
    assert job(code)["setup"]["commands"].splitlines()[-1] == "echo $MASTER_ADDR"


def test_set_up_may_come_before_what_only_sets_variables() -> None:
    found = job(
        f"{ONE}lr=3\necho $SLURM_JOB_ID\nmodule load a\nexport B=1\nexport C=$lr\npython t.py $lr\n"
    )
    assert found["setup"] == {
        "modules": ["a"],
        "commands": "lr=3\necho $SLURM_JOB_ID\nexport C=$lr\n"
        "# For the command, which does not pass them on.\nexport lr\n",
    }
    assert found["env"] == {"B": "1"}
    found = job(f"{ONE}d=$(date)\nmodule load a\npython t.py\n")
    assert found["setup"] == {"commands": "set +e\nd=$(date)\nmodule load a\n"}
    assert "script" in job(f"{ONE}module load a\n[ $? = 0 ] || exit\npython t.py\n")


def test_what_only_the_launch_line_used_goes_with_it() -> None:
    found = job(
        f"{TWO_NODES}head={FIRST}\nsrun torchrun --nnodes 2 --nproc_per_node 4 --rdzv_backend c10d "
        "--rdzv_endpoint $head:29500 t.py\n"
    )
    assert "setup" not in found
    assert found["rdzv"] == "c10d"


def test_no_comment_is_lost() -> None:
    code = (
        f"{TWO_NODES}# 1\nexport A=1  # 2\n# 3\nhead={FIRST}  # 4\n# 5\necho a  # 6\n"
        "# 7\nx=1\n# 8\nmodule load b  # 9\n# 10\nexport MASTER_ADDR=$head  # 11\n"
        "# 12\necho b  # 13\n# 14\n"
        "srun torchrun --nnodes 2 --nproc_per_node 4 --master_addr $head t.py $x  # 15\n# 16\n"
    )
    text = import_script(f"#!/bin/bash\n{code}", name="job.sbatch").text
    assert "script:" not in text
    numbers = [int(number) for number in re.findall(r"# (\d+)$", text, re.MULTILINE)]
    assert sorted(numbers) == list(range(1, 17))


def test_options_of_the_interpreter_line() -> None:
    found = job(f"{ONE}nvidia-smi\npython t.py\n", shebang="#! /bin/bash -e\n")
    assert found["setup"] == {"commands": "nvidia-smi\n"}
    found = job(f"{ONE}python t.py\necho x\n", shebang="#!/usr/bin/env bash\n")
    assert found["command"] == "set +e\npython t.py\necho x\n"


def test_without_a_count_of_cpus_none_is_asked_for() -> None:
    found = job("#SBATCH --gres=gpu:1\npython t.py --threads $OMP_NUM_THREADS\n")
    assert found["cpus_per_task"] == "default"


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
