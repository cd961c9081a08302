"""What the rules about world sizes, variables and interfaces find, in many dresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lint.asking import ALONE, ARRAY, NODES, ONE, TASKS, found, in_python, severities

if TYPE_CHECKING:
    from pathlib import Path

RUN = "srun python train.py\n"
ADDRESS = "--rdzv_endpoint=$head:$port"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{TASKS}export WORLD_SIZE=$SLURM_NNODES\n{RUN}", [5]),
        (f"{TASKS}export WORLD_SIZE=4\n{RUN}", [5]),
        (f"{TASKS}export WORLD_SIZE=16\n{RUN}", [5]),
        (f"{TASKS}export WORLD_SIZE=$SLURM_NTASKS_PER_NODE\n{RUN}", [5]),
        (f"{TASKS}export WORLD_SIZE=$SLURM_GPUS_ON_NODE\n{RUN}", [5]),
        (f"{TASKS}export WORLD_SIZE=$((SLURM_NNODES * 8))\n{RUN}", [5]),
        (f"{TASKS}N=2\nG=2\nexport WORLD_SIZE=$(($N * $G))\n{RUN}", [7]),
        (f"{TASKS}srun bash -c 'WORLD_SIZE=$SLURM_NNODES python train.py'\n", [5]),
        (f"{TASKS}export WORLD_SIZE=$SLURM_NTASKS\nsrun -n4 python train.py\n", [5]),
        (f"{TASKS}srun --export=ALL python train.py\nWORLD_SIZE=3 srun python b.py\n", [6]),
        (f"{TASKS}export WORLD_SIZE=$(scontrol show hostnames | wc -l)\n{RUN}", [5]),
        (f"{TASKS}export WORLD_SIZE=$(nvidia-smi -L | wc -l)\n{RUN}", [5]),
        (f"{TASKS}export WORLD_SIZE=$SLURM_NTASKS\n{RUN}", []),
        (f"{TASKS}export WORLD_SIZE=8\n{RUN}", []),
        (f"{TASKS}export WORLD_SIZE=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))\n{RUN}", []),
        (f"{TASKS}srun -n4 bash -c 'WORLD_SIZE=$SLURM_NTASKS python train.py'\n", []),
        (f"{NODES}export WORLD_SIZE=8\n{RUN}", []),
        (f"{NODES}export WORLD_SIZE=8\nsrun torchrun --nnodes=2 {ADDRESS} train.py\n", []),
        (f"{NODES}srun torchrun --nnodes=4 --nproc_per_node=4 {ADDRESS} a.py\n", [5]),
        (f"{NODES}srun torchrun --nnodes=2 --nproc_per_node=8 {ADDRESS} a.py\n", [5]),
        (f"{NODES}srun torchrun --nnodes=2 --nproc_per_node=4 {ADDRESS} a.py\n", []),
        (f"{NODES}srun torchrun --nnodes=$SLURM_NNODES --nproc_per_node=gpu {ADDRESS} a.py\n", []),
        (f"{NODES}srun torchrun --nnodes=1:2 --nproc_per_node=4 {ADDRESS} a.py\n", []),
        (f"{NODES}srun torchrun --nnodes=2 --nproc_per_node=2 {ADDRESS} a.py\n", []),
        (f"{ONE}torchrun --nnodes=2 --nproc_per_node=2 {ADDRESS} train.py\n", [5]),
        (f"{ONE}torchrun --standalone --nproc_per_node=4 train.py\n", [5]),
        (f"{ONE}torchrun --standalone --nproc_per_node=2 train.py\n", []),
        (f"{NODES}srun accelerate launch --num_machines 2 --num_processes 4 a.py\n", [5]),
        (f"{NODES}srun accelerate launch --num_machines 2 --num_processes 16 a.py\n", [5]),
        (f"{NODES}srun accelerate launch --num_machines 4 --num_processes 8 a.py\n", [5]),
        (f"{NODES}srun accelerate launch --num_machines 2 --num_processes 8 a.py\n", []),
        (f"{ONE}accelerate launch --num_processes 4 a.py\n", [5]),
        (f"{ONE}accelerate launch --multi_gpu --num_processes 2 a.py\n", []),
    ],
)
def test_world_sizes(text: str, lines: list[int]) -> None:
    assert found("world_size_mismatch", text) == lines


SETUP = "import os, torch, torch.distributed as dist, torch.multiprocessing as mp\n"


def spawning(world: int, count: int) -> str:
    return (
        f'def f(i):\n    dist.init_process_group("nccl", rank=i, world_size={world})\n'
        f"mp.spawn(f, nprocs={count})"
    )


@pytest.mark.parametrize(
    ("text", "program", "lines"),
    [
        (TASKS + RUN, 'dist.init_process_group("nccl", world_size=4)', [2]),
        (
            TASKS + RUN,
            'dist.init_process_group("nccl", world_size=int(os.environ["SLURM_NNODES"]))',
            [2],
        ),
        (TASKS + RUN, 'dist.init_process_group("nccl", world_size=torch.cuda.device_count())', [2]),
        (TASKS + RUN, 'os.environ["WORLD_SIZE"] = "16"\ndist.init_process_group("nccl")', [2]),
        (
            TASKS + RUN,
            'n = int(os.environ["SLURM_NTASKS"])\ndist.init_process_group("nccl", world_size=n)',
            [],
        ),
        (TASKS + RUN, 'dist.init_process_group("nccl", world_size=8)', []),
        (TASKS + RUN, 'dist.init_process_group("nccl")', []),
        (
            f"{ONE}torchrun --standalone --nproc_per_node=2 train.py\n",
            'dist.init_process_group("nccl", world_size=4)',
            [2],
        ),
        (
            f"{NODES}{RUN}",
            spawning(world=8, count=4),
            [],
        ),
        (
            f"{NODES}{RUN}",
            spawning(world=4, count=4),
            [3],
        ),
        (
            f"{ONE}python train.py\n",
            "def f(i):\n    torch.cuda.set_device(i)\nmp.spawn(f, nprocs=4)",
            [4],
        ),
        (
            f"{ONE}python train.py\n",
            spawning(world=2, count=2),
            [],
        ),
    ],
)
def test_world_sizes_in_the_program(
    text: str, program: str, lines: list[int], tmp_path: Path
) -> None:
    given = in_python("world_size_mismatch", text, SETUP + program, tmp_path)
    assert given == [f"train.py:{line}" for line in lines]


TYPED = NODES.replace("--gres=gpu:4", "--gpus-per-node=a100:4")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{NODES}srun torchrun --nnodes 2 --nproc_per_node=$SLURM_TASKS_PER_NODE a.py\n", [5]),
        (f"{TASKS}export WORLD_SIZE=$((SLURM_NNODES * SLURM_TASKS_PER_NODE))\n{RUN}", [5]),
        (f"{TASKS}export OMP_NUM_THREADS=$SLURM_JOB_CPUS_PER_NODE\n{RUN}", [5]),
        (f"{TASKS}srun python train.py --num-workers $SLURM_JOB_CPUS_PER_NODE\n", [5]),
        (f"{TASKS}N=$SLURM_TASKS_PER_NODE\nsrun python train.py --gpus $N\n", [5]),
        (f"{TASKS}mpirun -np $SLURM_TASKS_PER_NODE python train.py\n", [5]),
        (f"{TASKS}for i in $(seq 1 $SLURM_TASKS_PER_NODE); do echo $i; done\n", [5]),
        (f"{TYPED}srun torchrun --nnodes=2 --nproc_per_node=$SLURM_GPUS_PER_NODE a.py\n", [5]),
        (f"{TYPED}export WORLD_SIZE=$((SLURM_NNODES * SLURM_GPUS_PER_NODE))\n{RUN}", [5]),
        (f"{ONE}torchrun --standalone --nproc_per_node=$SLURM_JOB_GPUS a.py\n", [5]),
        (f"{TASKS}make -j$SLURM_JOB_CPUS_PER_NODE\n{RUN}", [5]),
        (f"{TASKS}echo $SLURM_TASKS_PER_NODE\n{RUN}", []),
        (f"{TASKS}srun python train.py --gpus ${{SLURM_TASKS_PER_NODE%%(*}}\n", []),
        (f"{TASKS}export T=$SLURM_TASKS_PER_NODE\n{RUN}", []),
        (f"{ONE}torchrun --standalone --nproc_per_node=$SLURM_TASKS_PER_NODE a.py\n", []),
        (f"{NODES}srun torchrun --nnodes=2 --nproc_per_node=$SLURM_GPUS_ON_NODE a.py\n", []),
    ],
)
def test_variables_that_are_no_numbers(text: str, lines: list[int]) -> None:
    assert found("slurm_var_not_int", text) == lines


@pytest.mark.parametrize(
    ("text", "program", "lines"),
    [
        (TASKS + RUN, 'n = int(os.environ["SLURM_TASKS_PER_NODE"])', [2]),
        (TASKS + RUN, 'n = int(os.environ.get("SLURM_JOB_CPUS_PER_NODE", 8))', [2]),
        (TASKS + RUN, 'x = os.environ["SLURM_TASKS_PER_NODE"]\nn = int(x)', [3]),
        (TYPED + RUN, 'n = int(os.getenv("SLURM_GPUS_PER_NODE"))', [2]),
        (TASKS + RUN, 'n = int(os.environ["SLURM_TASKS_PER_NODE"].split("(")[0])', []),
        (ONE + RUN, 'n = int(os.environ["SLURM_TASKS_PER_NODE"])', []),
        (TASKS + RUN, 'n = int(os.environ["SLURM_NTASKS"])', []),
    ],
)
def test_variables_that_are_no_numbers_in_the_program(
    text: str, program: str, lines: list[int], tmp_path: Path
) -> None:
    given = in_python("slurm_var_not_int", text, SETUP + program, tmp_path)
    assert given == [f"train.py:{line}" for line in lines]


EIGHT = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks=8\n#SBATCH --gres=gpu:4\n"
BARE = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:4\n#SBATCH --time=1:00:00\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{ALONE}python train.py --fold $SLURM_ARRAY_TASK_ID\n", [5]),
        (f'{ALONE}ID=$SLURM_ARRAY_TASK_ID\nC=$(sed -n "${{ID}}p" list)\npython train.py $C\n', [5]),
        (f"{ALONE}C=(a b)\npython train.py ${{C[$SLURM_ARRAY_TASK_ID]}}\n", [6]),
        (f"{EIGHT}export WORLD_SIZE=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))\n{RUN}", [5]),
        (f"{NODES}srun --cpus-per-task=$SLURM_CPUS_PER_TASK python train.py\n", [5]),
        (f"{NODES}export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n{RUN}", [5]),
        (f"{ONE}torchrun --standalone --nproc_per_node=$SLURM_GPUS_PER_NODE a.py\n", [5]),
        (f"{ONE}torchrun --standalone --nproc_per_node=$SLURM_GPUS a.py\n", [5]),
        (f"{ONE}torchrun --standalone --nproc_per_node=$SLURM_GPUS_PER_TASK a.py\n", [5]),
        (f"{BARE}export WORLD_SIZE=$SLURM_NTASKS\n{RUN}", [5]),
        (f"{TASKS}export WORLD_SIZE=$SLURM_STEP_NUM_TASKS\n{RUN}", [5]),
        (f"{TASKS}export WORLD_SIZE=$SLURM_WORLD_SIZE\n{RUN}", [5]),
        (f"{TASKS}srun bash -c 'RANK=$SLURM_RANK python train.py'\n", [5]),
        (f"{ALONE}python train.py --restart $SLURM_RESTART_COUNT\n", [5]),
        (f"{ALONE}python train.py --fold ${{SLURM_ARRAY_TASK_ID:-0}}\n", []),
        (
            f'{ALONE}if [ -n "$SLURM_ARRAY_TASK_ID" ]; then\n  ./a $SLURM_ARRAY_TASK_ID\nfi\n',
            [],
        ),
        (f"{ALONE}echo task $SLURM_ARRAY_TASK_ID\npython train.py\n", []),
        (f"{ALONE}# sbatch --array=0-9 job.sbatch\npython train.py $SLURM_ARRAY_TASK_ID\n", []),
        (f"{ARRAY}python train.py --fold $SLURM_ARRAY_TASK_ID\n", []),
        (f"{ALONE}: ${{SLURM_CPUS_PER_TASK:=4}}\npython a.py -j $SLURM_CPUS_PER_TASK\n", []),
        (f"{ALONE}SLURM_CPUS_PER_TASK=4\npython a.py -j $SLURM_CPUS_PER_TASK\n", []),
        (f"{ONE}torchrun --standalone --nproc_per_node=$SLURM_GPUS_ON_NODE a.py\n", []),
        (f"{BARE}srun bash -c 'WORLD_SIZE=$SLURM_NTASKS python train.py'\n", []),
        (f"{TASKS}srun bash -c 'N=$SLURM_STEP_NUM_TASKS python train.py'\n", []),
        (f"{ALONE}python train.py --try $((SLURM_RESTART_COUNT + 1))\n", []),
        (f"{NODES}srun -c 8 bash -c 'python a.py -j $SLURM_CPUS_PER_TASK'\n", []),
    ],
)
def test_variables_that_are_not_set(text: str, lines: list[int]) -> None:
    assert found("env_var_unset", text) == lines


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("head=n1\nsrun bash -c 'torchrun --nnodes=2 --rdzv_endpoint=$head:1 a.py'\n", [5]),
        ("MASTER_ADDR=$(hostname)\nsrun bash -c 'python a.py --addr $MASTER_ADDR'\n", [5]),
        ("DATA=/x\nsrun apptainer exec a.sif bash -c 'python a.py --data ${DATA}'\n", [5]),
        ("head=n1\nexport head\nsrun bash -c 'python a.py $head'\n", []),
        ('head=n1\nsrun bash -c "python a.py $head"\n', []),
        ("head=n1\nsrun bash -c 'head=n2; python a.py $head'\n", []),
        ("head=n1\nsrun bash -c 'python a.py $1' _ $head\n", []),
        ("i=1\nsrun bash -c 'for i in 1 2; do python a.py $i; done'\n", []),
    ],
)
def test_variables_that_are_not_exported(body: str, lines: list[int]) -> None:
    assert found("env_var_unset", NODES + body) == lines


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("srun torchrun --nnodes=2 --rdzv_endpoint=$haed_node:2 a.py\n", [5]),
        ("srun torchrun --nnodes=2 --nproc_per_node=$GPUS_PER_NODE --master_addr n1 a.py\n", [5]),
        ("head_node=n1\nsrun torchrun --nnodes=2 --rdzv_endpoint=$head_node:2 a.py\n", []),
        ("source vars.sh\nsrun torchrun --nnodes=2 --rdzv_endpoint=$head:2 a.py\n", []),
        ("read -r head < f\nsrun torchrun --nnodes=2 --rdzv_endpoint=$head:2 a.py\n", []),
        ("# sbatch --export=ALL,N=4 job.sh\nsrun torchrun --nproc_per_node=$N a.py\n", []),
        ("srun torchrun --nnodes=2 --nproc_per_node=${N:-4} a.py\n", []),
        ("srun torchrun --nnodes=2 --rdzv_endpoint=$HOSTNAME:2 a.py\n", []),
    ],
)
def test_variables_that_nobody_sets(body: str, lines: list[int]) -> None:
    assert found("env_var_unset", NODES + body) == lines


@pytest.mark.parametrize(
    ("text", "program", "lines"),
    [
        (EIGHT + RUN, 'n = int(os.environ["SLURM_NTASKS_PER_NODE"])', [2]),
        (EIGHT + RUN, 'n = int(os.environ.get("SLURM_GPUS_PER_NODE"))', [2]),
        (ALONE + RUN, 'i = os.environ["SLURM_ARRAY_TASK_ID"]', [2]),
        (BARE + "python train.py\n", 'n = os.environ["SLURM_NTASKS"]', [2]),
        (BARE + RUN, 'n = os.environ["SLURM_NTASKS"]', []),
        (EIGHT + RUN, 'n = os.environ.get("SLURM_NTASKS_PER_NODE", "1")', []),
        (EIGHT + RUN, 'n = os.environ.get("SLURM_NTASKS_PER_NODE")', []),
        (
            ALONE + RUN,
            'if "SLURM_ARRAY_TASK_ID" in os.environ:\n    i = os.environ["SLURM_ARRAY_TASK_ID"]',
            [],
        ),
    ],
)
def test_variables_that_the_program_misses(
    text: str, program: str, lines: list[int], tmp_path: Path
) -> None:
    given = in_python("env_var_unset", text, SETUP + program, tmp_path)
    assert given == [f"train.py:{line}" for line in lines]


def test_variables_of_later_releases() -> None:
    text = f"{ONE}torchrun --standalone --nproc_per_node=$SLURM_GPUS_ON_NODE a.py\n"
    assert found("env_var_unset", text, slurm="20.11") == [5]
    assert found("env_var_unset", text, slurm="21.08") == []


def test_an_empty_argument_is_less_than_an_empty_count() -> None:
    argument = f"{ALONE}python train.py --fold $SLURM_ARRAY_TASK_ID\n"
    count = f"{ONE}torchrun --standalone --nproc_per_node=$SLURM_GPUS_PER_NODE a.py\n"
    assert severities("env_var_unset", argument) == ["warning"]
    assert severities("env_var_unset", count) == ["error"]


# --- NCCL and gloo ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "loopback", "syntax"),
    [
        ("export NCCL_SOCKET_IFNAME=lo", True, False),
        ("export NCCL_SOCKET_IFNAME='=lo'", True, False),
        ("export GLOO_SOCKET_IFNAME=lo", True, False),
        ("export TP_SOCKET_IFNAME=lo NCCL_DEBUG=INFO", True, False),
        ("IF=lo; export NCCL_SOCKET_IFNAME=$IF", True, False),
        ("export NCCL_SOCKET_IFNAME=^lo,docker0", False, False),
        ("export NCCL_SOCKET_IFNAME=ib0", False, False),
        ("export NCCL_SOCKET_IFNAME=eth", False, False),
        ("export GLOO_SOCKET_IFNAME=ib0", False, False),
        ("export GLOO_SOCKET_IFNAME=hsn0,hsn1", False, False),
        ("export GLOO_SOCKET_IFNAME=^lo,docker0", False, True),
        ("export GLOO_SOCKET_IFNAME==eth0", False, True),
        ("export GLOO_SOCKET_IFNAME=eth", False, True),
        ("export GLOO_SOCKET_IFNAME=10.0.0.5", False, True),
        ("export NCCL_SOCKET_IFNAME=192.168.1.7", False, True),
        ("export NCCL_SOCKET_IFNAME=eth*", False, True),
        ("export GLOO_SOCKET_IFNAME=$(hostname -I | awk '{print $1}')", False, True),
        ("export GLOO_SOCKET_IFNAME=$MASTER_ADDR", False, True),
        (
            "export NCCL_SOCKET_IFNAME=^lo; export GLOO_SOCKET_IFNAME=$NCCL_SOCKET_IFNAME",
            False,
            True,
        ),
        ("export GLOO_SOCKET_IFNAME=$(ip route | awk '/default/ {print $5}')", False, False),
        ("export GLOO_SOCKET_IFNAME=$(ls /sys/class/net | grep ib | head -1)", False, False),
    ],
)
def test_interfaces(line: str, loopback: bool, syntax: bool) -> None:
    text = f"{TASKS}{line}\n{RUN}"
    assert found("ifname_loopback", text) == ([5] if loopback else [])
    assert found("gloo_ifname_syntax", text) == ([5] if syntax else [])


def test_interfaces_in_other_places(tmp_path: Path) -> None:
    assert found("ifname_loopback", f"{ONE}export NCCL_SOCKET_IFNAME=lo\n{RUN}") == []
    assert found("ifname_loopback", f"{TASKS}NCCL_SOCKET_IFNAME=lo srun ./train.sh\n") == [5]
    assert found("ifname_loopback", f"{TASKS}srun env NCCL_SOCKET_IFNAME=lo python a.py\n") == [5]
    program = 'import os, socket\nos.environ["NCCL_SOCKET_IFNAME"] = "lo"\n'
    assert in_python("ifname_loopback", TASKS + RUN, program, tmp_path) == ["train.py:2"]
    program = (
        "import os, socket\n"
        'os.environ["GLOO_SOCKET_IFNAME"] = socket.gethostbyname(socket.gethostname())\n'
    )
    assert in_python("gloo_ifname_syntax", TASKS + RUN, program, tmp_path) == ["train.py:2"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{TASKS}export NCCL_IB_DISABLE=1\n{RUN}", [5]),
        (f"{TASKS}export NCCL_P2P_DISABLE=1\n{RUN}", [5]),
        (f"{ONE}export NCCL_P2P_DISABLE=1\n{RUN}", [5]),
        (f"{ONE}export NCCL_SHM_DISABLE=1\n{RUN}", [5]),
        (f"{TASKS}export NCCL_NET=Socket\n{RUN}", [5]),
        (f"{TASKS}srun --export=ALL,NCCL_IB_DISABLE=1 python train.py\n", [5]),
        (f"{TASKS}#SBATCH --export=ALL,NCCL_IB_DISABLE=1\n{RUN}", [5]),
        (f"{TASKS}NCCL_IB_DISABLE=1 srun python train.py\n", [5]),
        (f"{NODES}srun apptainer exec --env NCCL_IB_DISABLE=1 a.sif python train.py\n", [5]),
        (f"{TASKS}export NCCL_IB_DISABLE=0\n{RUN}", []),
        (f"{ONE}export NCCL_IB_DISABLE=1\n{RUN}", []),
        (f"{ALONE}export NCCL_P2P_DISABLE=1\n{RUN}", []),
        (f"{ONE.replace('gpu:2', 'gpu:rtx4090:2')}export NCCL_P2P_DISABLE=1\n{RUN}", []),
        (f"{TASKS}# export NCCL_IB_DISABLE=1\nexport NCCL_DEBUG=INFO\n{RUN}", []),
    ],
)
def test_fallbacks_of_nccl(text: str, lines: list[int]) -> None:
    assert found("nccl_fallback_left_on", text) == lines


def test_fallbacks_of_nccl_in_the_program(tmp_path: Path) -> None:
    program = 'import os\nos.environ["NCCL_IB_DISABLE"] = "1"\n'
    assert in_python("nccl_fallback_left_on", TASKS + RUN, program, tmp_path) == ["train.py:2"]


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("export OMP_NUM_THREADS=4", ["train.py:3"]),
        # As Slurm has it anyway: all still take the first.
        ("export CUDA_VISIBLE_DEVICES=0,1,2,3", ["train.py:3"]),
        ("export ROCR_VISIBLE_DEVICES=0,1,2,3", ["train.py:3"]),
        ("export CUDA_VISIBLE_DEVICES=1", []),
        ("export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID", []),
        ("export CUDA_VISIBLE_DEVICES=$GPUS", []),
    ],
)
def test_a_mask_for_all_ranks_chooses_for_none(
    assignment: str, expected: list[str], tmp_path: Path
) -> None:
    program = "import torch\nnet = torch.nn.Linear(4, 4)\nnet.cuda()\n"
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    text = f"{TASKS}{assignment}\nsrun python train.py\n"
    assert found("no_set_device", text, tmp_path) == expected
