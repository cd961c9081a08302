"""Launches in many dresses: which of the rules about them speak, and which keep silent.

Each case names all that these rules find together, so that no cause is told twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from slurmgen.cluster.load import load_profile
from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint import registry
from slurmgen.lint.job import load

if TYPE_CHECKING:
    from pathlib import Path

    from slurmgen.cluster.profile import Profile

RULES = """
tasks-exceed-gpus gpu-not-requested gpu-isolated-nccl cpus-not-inherited gpus-idle srun-missing
multinode-launcher-no-srun double-launch deepspeed-needs-hostfile standalone-multinode
srun-narrows-gpus srun-task-count-implicit hetjob-srun-group srun-export-drops-env
export-none-srun nested-srun-no-overlap parallel-steps-serialise background-no-wait
container-no-gpu-flag container-gpu-mask gpu-bind-hides-peers
""".split()

# Directives, a bar between them.
TWO_NODES_TASK_PER_GPU = "--nodes=2|--ntasks-per-node=4|--gpus-per-node=4"
TWO_NODES_TASK_PER_NODE = "--nodes=2|--ntasks-per-node=1|--gpus-per-node=4"
FOUR_TASKS = "--nodes=1|--ntasks-per-node=4|--gres=gpu:4"
ONE_TASK = "--nodes=1|--ntasks=1|--gres=gpu:4"
ONE_GPU = "-N1|-n1|--gres=gpu:1"
CPUS = "-N1|-n1"
HETJOB = "-N1 -n1 --mem=8G|hetjob|-N1 -n2 --gres=gpu:2"

MASTER = """\
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
"""
C10D = "--rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:29500 train.py"

PLAIN = """\
import torch
net = torch.nn.Linear(4, 4).cuda()
"""
DDP = """\
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
net = DistributedDataParallel(torch.nn.Linear(4, 4).cuda(), device_ids=[local_rank])
"""
SPAWN = """\
import torch, torch.multiprocessing as mp, torch.distributed as dist
def run(i, world_size):
    dist.init_process_group("nccl", rank=i, world_size=world_size)
    torch.cuda.set_device(i)
if __name__ == "__main__":
    mp.spawn(run, args=(4,), nprocs=torch.cuda.device_count())
"""
LIGHTNING = """\
import lightning as L
L.Trainer(accelerator="gpu", devices=4, strategy="ddp").fit(net)
"""
MPI = """\
from mpi4py import MPI
print(MPI.COMM_WORLD.Get_rank())
"""


class Case(NamedTuple):
    """What is expected, as names with blanks between; directives; shell code; train.py."""

    expected: str
    directives: str
    body: str
    program: str

    @property
    def script(self) -> str:
        lines = [f"#SBATCH {directive}" for directive in self.directives.split("|")]
        return "\n".join(["#!/bin/bash", *lines, self.body, ""])


def of(expected: str, directives: str, *bodies: str, program: str = "") -> list[Case]:
    return [Case(expected, directives, body, program) for body in bodies]


SRUN_MISSING = [
    *of(
        "srun-missing",
        TWO_NODES_TASK_PER_GPU,
        MASTER + "python train.py",
        "python train.py",
        "python -u -m pkg.train --world-size 8",
        MASTER + "main() {\n  python train.py\n}\nmain",
        MASTER + 'CMD="python train.py"\n$CMD --lr 1',
        "export WORLD_SIZE=$SLURM_NTASKS\napptainer exec --nv x.sif python train.py",
        "python prepare.py\nsrun -N1 -n1 python download.py\npython train.py --num_nodes 2",
    ),
    *of("srun-missing", TWO_NODES_TASK_PER_GPU, "python train.py", program=DDP),
    *of("srun-missing", TWO_NODES_TASK_PER_GPU, "python train.py", program=SPAWN),
    *of(
        "srun-missing",
        "-N2|-n8|-G8",
        "bash -c 'export RANK=$SLURM_PROCID; python train.py'",
    ),
    *of("srun-missing", FOUR_TASKS, "python train.py", "python train.py --distributed"),
    *of("srun-missing", FOUR_TASKS, "python train.py", program=LIGHTNING),
    *of("srun-missing", "-N2|-n8", MASTER + "python train.py --backend gloo"),
    *of("srun-missing", "-n48", "python train.py", program=MPI),
    *of(
        "",
        TWO_NODES_TASK_PER_GPU,
        "python prepare.py\nsrun python train.py",
        "python prepare.py\nsrun ./wrap.sh python train.py",
        'python() { srun python3 "$@"; }\npython train.py',
        "ray start --head\npython tune.py",
        "python -m pip install torch",
        "for host in $hosts; do ssh $host RANK=1 python train.py & done\npython train.py",
    ),
    *of(
        "",
        FOUR_TASKS,
        "python main.py --multiprocessing-distributed --dist-url tcp://127.0.0.1:1",
        "for i in 0 1 2 3; do CUDA_VISIBLE_DEVICES=$i python train.py --seed $i & done\nwait",
        "python -m vllm.entrypoints.openai.api_server --model x",
    ),
    *of("", FOUR_TASKS, "python train.py", program=SPAWN),
    # Tasks that are meant as CPUs.
    *of("", "-n8|--gres=gpu:1", "python train.py"),
    *of("", "-N1|-n16", "python train.py"),
]

SEVERAL_NODES = [
    *of(
        "multinode-launcher-no-srun",
        TWO_NODES_TASK_PER_NODE,
        MASTER + f"torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        MASTER + f"torchrun --nnodes=$SLURM_NNODES --nproc_per_node=4 {C10D}",
        f"python -m torch.distributed.run --nnodes 2 --nproc_per_node 4 {C10D}",
        "python -m torch.distributed.launch --nnodes=2 --nproc_per_node=4 train.py",
        "accelerate launch --num_machines 2 --num_processes 8 train.py",
        "accelerate launch --config_file config.yaml train.py",
        f"NODES=$SLURM_JOB_NUM_NODES\ntorchrun --nnodes=$NODES --nproc_per_node=4 {C10D}",
        f"apptainer exec --nv x.sif torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        'ARGS=(--nnodes 2 --nproc_per_node 4)\ntorchrun "${ARGS[@]}" train.py',
        'LAUNCHER="torchrun --nnodes 2 --nproc_per_node 4"\nbash -c "$LAUNCHER train.py"',
    ),
    *of(
        "standalone-multinode",
        TWO_NODES_TASK_PER_NODE,
        "srun torchrun --nproc_per_node=4 train.py",
        "srun torchrun --standalone --nproc_per_node=4 train.py",
        "srun torchrun --nnodes=1 --nproc_per_node=4 train.py",
        "srun python -m torch.distributed.launch --nproc_per_node=4 train.py",
        'srun bash -c "torchrun --nproc_per_node 4 --master_addr $MASTER_ADDR train.py"',
        "srun accelerate launch --num_processes 4 train.py",
        "srun accelerate launch --multi_gpu --num_machines 1 --num_processes 4 train.py",
        "srun deepspeed --num_gpus 4 train.py",
        "torchrun --standalone --nproc_per_node=4 train.py",
        "torchrun --nproc_per_node=4 train.py",
        "accelerate launch --multi_gpu train.py",
    ),
    *of(
        "deepspeed-needs-hostfile",
        TWO_NODES_TASK_PER_NODE,
        "deepspeed --num_nodes 2 --num_gpus 4 train.py",
        "deepspeed --num_gpus=4 train.py",
        "deepspeed train.py --deepspeed_config ds.json",
        "deepspeed --launcher slurm --num_nodes=$SLURM_NNODES train.py",
        "python -m deepspeed.launcher.runner --num_nodes 2 train.py",
    ),
    *of(
        "",
        TWO_NODES_TASK_PER_NODE,
        MASTER + f"srun torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        f"mpirun -np 2 -npernode 1 torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        "for h in $hosts; do ssh $h torchrun --nnodes=2 train.py & done\nwait",
        f"srun torchrun --nnodes=2 --nproc_per_node=4 {C10D}\n"
        "torchrun --standalone --nproc_per_node=4 eval.py",
        "srun bash -c 'torchrun --standalone --nproc_per_node=4 train.py --fold $SLURM_NODEID'",
        "srun -N1 -n1 torchrun --standalone --nproc_per_node=4 train.py",
        "export PET_NNODES=2\nsrun torchrun --nproc_per_node=4 train.py",
        "srun torchrun $ARGS train.py",
        "deepspeed --hostfile hosts train.py",
        "deepspeed -H hosts train.py",
    ),
    *of(
        "",
        ONE_TASK,
        "torchrun --nnodes=1 --nproc_per_node=4 train.py",
        "deepspeed --num_gpus 4 train.py",
    ),
]

DOUBLE = [
    *of(
        "double-launch",
        TWO_NODES_TASK_PER_GPU,
        f"srun torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        # srun ignores this for SLURM_NTASKS.
        f"srun --ntasks-per-node=1 torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        f"srun -N2 --ntasks-per-node=1 torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        f"srun -n 8 torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        f"srun bash -c 'torchrun --nnodes=2 --nproc_per_node=4 {C10D}'",
        "srun --label python -m torch.distributed.run --nproc_per_node=$SLURM_GPUS_ON_NODE "
        f"--nnodes=$SLURM_NNODES {C10D}",
        f"srun apptainer exec --nv x.sif torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        f"mpirun -np 8 torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        "LAUNCH='torchrun --nnodes=2 --nproc_per_node=4'\nsrun --cpu-bind=none $LAUNCH train.py",
        "srun accelerate launch --num_machines 2 --num_processes 8 train.py",
        "srun deepspeed --num_gpus 4 --hostfile hosts train.py",
        "srun mpirun -np 8 python train.py",
    ),
    *of("double-launch", TWO_NODES_TASK_PER_GPU, "srun deepspeed train.py"),
    *of(
        "double-launch standalone-multinode",
        TWO_NODES_TASK_PER_GPU,
        "srun torchrun --nproc_per_node=4 train.py",
    ),
    *of(
        "double-launch",
        FOUR_TASKS,
        "srun torchrun --standalone --nproc_per_node=4 train.py",
        "srun accelerate launch --num_processes 4 train.py",
    ),
    *of("double-launch", FOUR_TASKS, "srun python train.py", program=SPAWN),
    *of(
        "double-launch",
        "-N1|--ntasks-per-node=4|--gpus-per-task=1",
        "srun torchrun --standalone --nproc_per_node=4 train.py",
    ),
    *of(
        "double-launch",
        TWO_NODES_TASK_PER_NODE,
        "srun deepspeed --num_nodes 2 --hostfile=hosts train.py",
    ),
    *of(
        "",
        TWO_NODES_TASK_PER_GPU,
        f"srun -N2 -n2 --ntasks-per-node=1 torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        f"srun --nodes=2 --ntasks=2 torchrun --nnodes=2 --nproc_per_node=4 {C10D}",
        # An agent for each task.
        f"srun torchrun --nnodes=8 --nproc_per_node=1 {C10D}",
    ),
    *of(
        "",
        FOUR_TASKS,
        "torchrun --standalone --nproc_per_node=4 train.py",
        "srun -n1 torchrun --standalone --nproc_per_node=4 train.py",
        "srun bash -c 'torchrun --standalone --nproc_per_node=1 train.py --seed $SLURM_PROCID'",
    ),
]

GPUS = [
    *of(
        "srun-narrows-gpus",
        FOUR_TASKS,
        "srun --gres=gpu:1 python train.py",
        "srun --gpus=1 python train.py",
        "srun -G1 python train.py",
        "srun --gpus-per-node=1 python train.py",
        "srun --gres=gpu:a100:2 python train.py",
        "srun -n 4 --gres gpu:1 bash -c 'RANK=$SLURM_PROCID python train.py'",
        "srun -n1 --gres=gpu:1 torchrun --standalone --nproc_per_node=4 train.py",
    ),
    *of("srun-narrows-gpus", TWO_NODES_TASK_PER_GPU, "srun --gpus=4 python train.py"),
    *of(
        "",
        FOUR_TASKS,
        "srun --gres=gpu:4 python train.py",
        "srun -n1 --gres=gpu:1 python train.py",
        "srun --gres=none python train.py --device cpu",
        "srun --gpus-per-task=1 python train.py",
        "srun --gres=gpu:1 bash -c 'python eval.py --shard $SLURM_PROCID'",
    ),
    *of("tasks-exceed-gpus", "-N1|--ntasks-per-node=2|--gres=gpu:1", "srun python train.py"),
    *of("tasks-exceed-gpus", "-N1|-n8|--gpus=4", "srun python train.py"),
    *of("tasks-exceed-gpus", "-n8|--gpus=4", "srun python train.py"),
    *of("tasks-exceed-gpus", "-N2|-n8|--gres=gpu:2", MASTER + "srun python -m pkg.train"),
    # world-size-mismatch
    *of("", "-N1|-n1|--gres=gpu:2", "torchrun --nproc_per_node=4 train.py"),
    *of(
        "tasks-exceed-gpus",
        "-N1|-n4|--gres=gpu:2",
        "mpirun -np 4 python train.py",
        "srun -n 4 python train.py",
    ),
    *of("tasks-exceed-gpus", "-N1|-n4|--gres=gpu:2", "srun python train.py", program=LIGHTNING),
    *of(
        "",
        "-N1|-n4|--gres=gpu:1",
        "srun ./gromacs",
        "srun -n1 python train.py",
        "srun python preprocess.py",
        "srun --mpi=pmix python solve.py",
        "srun bash -c 'python eval.py --shard $SLURM_PROCID'",
        "nvidia-cuda-mps-control -d\nsrun python train.py",
    ),
    *of("", "-N1|-n4|--gres=gpu:1", "srun python train.py", program=MPI),
    *of("", "-N1|--ntasks-per-gpu=2|--gres=gpu:1", "srun python train.py"),
    *of("", "-N2|--gpus=4|--ntasks-per-node=2", "srun python train.py"),
    # Here it is the spelling that is wrong.
    *of("", "-N2|--tasks=8|--gpus-per-node=4", "srun python train.py"),
    *of(
        "gpu-bind-hides-peers",
        "-N1|-n1|--gpus-per-task=1",
        "srun torchrun --standalone --nproc_per_node=2 train.py",
        "srun accelerate launch --multi_gpu --num_processes 4 train.py",
        "srun python train.py --devices 4 --strategy ddp",
    ),
    *of(
        "gpu-bind-hides-peers",
        ONE_TASK,
        "srun --gpu-bind=single:1 torchrun --standalone --nproc_per_node=4 train.py",
        "srun --gpu-bind=mask_gpu:0x3 torchrun --standalone --nproc_per_node=4 train.py",
        "srun --gpu-bind=closest torchrun --standalone --nproc_per_node=4 train.py",
        "srun --gpus-per-task=1 torchrun --standalone --nproc_per_node=4 train.py",
    ),
    *of(
        "gpu-bind-hides-peers",
        "-N1|--ntasks-per-node=4|--gpus-per-task=1",
        "srun python train.py",
        program=LIGHTNING,
    ),
    *of(
        "",
        "-N1|--ntasks-per-node=4|--gpus-per-task=1",
        "srun python train.py",
        program=LIGHTNING.replace("devices=4", "devices=-1"),
    ),
    *of(
        "gpu-bind-hides-peers",
        TWO_NODES_TASK_PER_GPU + "|--gpu-bind=single:1",
        "srun python train.py trainer.devices=4",
    ),
    *of(
        "",
        "-N1|-n1|--gpus-per-task=4",
        "srun torchrun --standalone --nproc_per_node=4 train.py",
    ),
    *of(
        "",
        "-N1|--ntasks-per-node=4|--gpus-per-task=1|--gpu-bind=none",
        "srun python train.py",
        program=LIGHTNING,
    ),
    *of("", "-N1|--ntasks-per-node=4|--gpus-per-task=1", "srun python train.py"),
    *of("", "-N1|--ntasks-per-node=4|--gpus-per-task=1", "srun python train.py", program=DDP),
]

NOT_REQUESTED = [
    *of(
        "gpu-not-requested",
        CPUS,
        "srun python train.py --device cuda",
        "python train.py --device=cuda:0",
        "python train.py --accelerator gpu",
        "python train.py trainer.accelerator=gpu",
        "python train.py --gpus 1",
        "export CUDA_VISIBLE_DEVICES=0\npython train.py",
        "deepspeed train.py",
        "torchrun --nproc_per_node=gpu train.py",
        "srun --gres=gpu:1 python train.py",
        "apptainer exec --nv x.sif python train.py",
    ),
    *of("gpu-not-requested", CPUS, "python train.py", program=PLAIN),
    *of("gpu-not-requested", CPUS, "python train.py", program=LIGHTNING),
    *of("gpu-not-requested", "-N1|-n4", MASTER + "srun python train.py", program=DDP),
    *of("gpu-not-requested", "-N1|-n1|-p short", "python train.py --device cuda"),
    *of("gpu-not-requested", "-N1|--exclusive|-n4", "srun python train.py --device cuda"),
    *of(
        "gpu-not-requested",
        "-N1|--exclusive|-n1",
        "torchrun --standalone --nproc_per_node=4 train.py",
    ),
    *of(
        "",
        "-N1|--exclusive|-n1",
        "torchrun --standalone --nproc_per_node=4 train.py --backend gloo",
        "accelerate launch --cpu --num_processes 4 train.py",
    ),
    *of(
        "",
        CPUS,
        "python train.py",
        "python train.py --device cpu",
        "python train.py --gpus 0",
        "export CUDA_VISIBLE_DEVICES=\npython train.py",
        "apptainer exec --nv x.sif samtools index x.bam",
    ),
    *of("", CPUS, "python train.py", program="import torch\nx = torch.cuda.is_available()\n"),
    *of("", "-N1|-n1|-p gpu", "python train.py --device cuda"),
    *of("", "-N1|-n1|-p a100", "python train.py --device cuda"),
    *of("", "-N1|-n1|-C v100", "python train.py --device cuda"),
    *of("", "-N1|-n1|--gres=shard:1", "python train.py --device cuda"),
    *of("", "-N1|-n4|--exclusive", "srun --gres=gpu:4 python train.py"),
    *of("", "-n1", "# usage: sbatch --gres=gpu:1 job.sbatch\npython train.py --device cuda"),
    # A directive that sbatch passes over is told by another rule.
    *of("", "-n1\n# SBATCH --gres=gpu:1", "python train.py --device cuda"),
]

IDLE = [
    *of("gpus-idle", ONE_TASK, "python train.py", "srun python -u train.py", program=PLAIN),
    *of("gpus-idle", FOUR_TASKS, "python train.py", program=PLAIN),
    *of("gpus-idle", "-N2|--gpus-per-node=1", "python train.py", program=PLAIN),
    *of(
        "gpus-idle",
        ONE_TASK,
        "torchrun --standalone --nproc_per_node=2 train.py",
        program=DDP,
    ),
    *of("", ONE_TASK, "torchrun --standalone --nproc_per_node=4 train.py", program=DDP),
    *of(
        "",
        ONE_TASK,
        "python train.py",
        program=PLAIN + "net = torch.nn.DataParallel(net)\n",
    ),
    *of(
        "",
        ONE_TASK,
        "python train.py",
        program=PLAIN + "from mylib import train\ntrain(net)\n",
    ),
    *of("", ONE_TASK, "python train.py", program=PLAIN + "other = net.to('cuda:1')\n"),
    *of("", ONE_GPU, "python train.py", program=PLAIN),
    *of(
        "",
        ONE_TASK,
        "python train.py\npython other.py",
        "for i in 0 1 2 3; do CUDA_VISIBLE_DEVICES=$i python train.py & done; wait",
        "python train.py --devices 4",
        program=PLAIN,
    ),
]

CPUS_OF_TASKS = [
    *of(
        "cpus-not-inherited",
        "-N1|--ntasks-per-node=2|-c8|--gres=gpu:2",
        "srun python train.py",
        "srun bash -c 'RANK=$SLURM_PROCID python train.py'",
        "srun --cpu-bind=cores --label python train.py",
    ),
    *of(
        "",
        "-N1|--ntasks-per-node=2|-c8|--gres=gpu:2",
        "srun -c 8 python train.py",
        "srun --cpus-per-task=$SLURM_CPUS_PER_TASK python train.py",
        "export SRUN_CPUS_PER_TASK=8\nsrun python train.py",
        "SRUN_CPUS_PER_TASK=8 srun python train.py",
        "srun --cpu-bind=none python train.py",
        "srun hostname",
    ),
    *of("", "-N1|-n2|-c1|--gres=gpu:2", "srun python train.py"),
    *of(
        "srun-task-count-implicit",
        "-N1|--exclusive|-c4|--gpus-per-node=4",
        "srun -c $SLURM_CPUS_PER_TASK python train.py",
        "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\nsrun python train.py",
        "srun -c 4 torchrun --standalone --nproc_per_node=4 train.py",
    ),
    *of("srun-task-count-implicit", "-N1|-c16|--gres=gpu:1", "srun -c 4 python train.py"),
    *of("", "-N1|-n1|--exclusive|-c4|--gpus-per-node=4", "srun -c 4 python train.py"),
    *of("", "-N1|--exclusive|-c4|--gpus-per-node=4", "srun -n1 -c 4 python train.py"),
    *of("", "-N1|-c4|--gres=gpu:1", "srun -c 4 python train.py"),
]

HETEROGENEOUS = [
    *of(
        "hetjob-srun-group",
        HETJOB,
        "srun python train.py",
        "srun hostname\nsrun --mpi=pmix ./solver",
        "srun --het-group=0 ./a",
    ),
    *of(
        "",
        HETJOB,
        "srun --het-group=0,1 python train.py",
        "srun --pack-group=0-1 ./b",
        "srun ./a &\nsrun --het-group=1 ./b &\nwait",
        "srun ./a : ./b",
    ),
]

EXPORT = [
    *of(
        "srun-export-drops-env",
        ONE_GPU,
        "srun --export=FOO=1 python train.py",
        "srun --export NONE python train.py",
        "srun -n1 --export=NIL hostname",
        "srun --export=MASTER_ADDR,MASTER_PORT python train.py",
        "srun --export=WANDB_MODE=offline torchrun --standalone --nproc_per_node=1 train.py",
        'srun --export="NCCL_DEBUG=INFO,MASTER_ADDR=$MASTER_ADDR" python train.py',
        "srun --container-image=x.sqsh --export=A=1 python train.py",
        'SRUN_ARGS="--export=A=1 --label"\nsrun $SRUN_ARGS python train.py',
        "export SLURM_EXPORT_ENV=FOO=1\nsrun python train.py",
        "module load python\nsrun --export=NONE ./solver",
        "export A=1\nsrun --export=PATH /opt/bin/python train.py",
    ),
    *of(
        "",
        ONE_GPU,
        "srun --export=ALL python train.py",
        "srun --export=ALL,A=1 python train.py",
        "srun --export=A=1,all python train.py",
        "srun --export=PATH,HOME python train.py",
        "srun --export=NONE /usr/bin/hostname",
        "srun --export=$LIST python train.py",
    ),
    *of(
        "export-none-srun",
        ONE_GPU + "|--export=NONE",
        "srun python train.py",
        "module load x\ntime srun -n1 ./solver",
        "export SLURM_EXPORT_ENV2=ALL\nsrun hostname",
    ),
    *of("export-none-srun", ONE_GPU + "|--export=nil", "srun hostname"),
    *of("export-none-srun", ONE_GPU + "|--export=DATA=/x", "srun python train.py"),
    *of(
        "",
        ONE_GPU + "|--export=NONE",
        "python train.py",
        "unset SLURM_EXPORT_ENV\nsrun python train.py",
        "export SLURM_EXPORT_ENV=ALL\nsrun python train.py",
        "export SRUN_EXPORT_ENV=ALL\nsrun python train.py",
        "srun --export=ALL python train.py",
        "SLURM_EXPORT_ENV=ALL srun python train.py",
        "env -u SLURM_EXPORT_ENV srun python train.py",
        "srun /usr/bin/hostname",
    ),
    *of("", ONE_GPU + "|--export=ALL,DATA=/x", "srun python train.py"),
]

CALLS_SRUN = "import subprocess\nsubprocess.run(['srun', '-n1', 'hostname'])\n"
NESTED = [
    *of(
        "nested-srun-no-overlap",
        TWO_NODES_TASK_PER_NODE,
        "srun -n1 -N1 bash -c 'srun -n2 hostname; python train.py'",
        "srun -n1 bash <<'EOF'\nsrun python train.py\nEOF",
    ),
    *of("nested-srun-no-overlap", ONE_GPU, "srun python train.py", program=CALLS_SRUN),
    *of(
        "",
        TWO_NODES_TASK_PER_NODE,
        "srun -n1 -N1 bash -c 'srun --overlap -n2 hostname; python train.py'",
        "srun --overlap -n1 -N1 bash -c 'srun -n2 hostname; python train.py'",
        "bash -c 'srun -n2 hostname'",
    ),
    *of(
        "",
        ONE_GPU,
        "srun python train.py",
        program=CALLS_SRUN.replace("'-n1'", "'--overlap'"),
    ),
    *of("", ONE_GPU, "python train.py", program=CALLS_SRUN),
]

FOUR_RUNS = "-N1|-n4|--gres=gpu:4|--mem=64G"
SIDE_BY_SIDE = [
    *of(
        "parallel-steps-serialise",
        FOUR_RUNS,
        "srun -n1 --gres=gpu:1 python a.py &\nsrun -n1 --gres=gpu:1 python b.py &\nwait",
        "for i in {0..3}; do srun -n1 --gres=gpu:1 --mem=16G python a.py $i & done; wait",
        "for i in {0..3}; do srun --exact -n1 --gres=gpu:1 python a.py $i & done; wait",
        "for i in {0..3}; do srun --exact -n1 --mem=16G python a.py $i & done; wait",
        "run() { srun -n1 --gres=gpu:1 python a.py $1; }\nrun 1 &\nrun 2 &\nwait",
        "run() { srun -n1 --gres=gpu:1 python a.py $1 & }\nrun 1\nrun 2\nwait",
        "(srun -n1 --gres=gpu:1 ./a) &\n(srun -n1 --gres=gpu:1 ./b) &\nwait",
        "while read f; do srun -n1 --gres=gpu:1 ./a $f & done < list\nwait",
        "srun -n1 nvidia-smi dmon &\nsrun python train.py --seed 1",
        "cat list | xargs -P 4 -I{} srun -n1 --gres=gpu:1 python a.py {}",
        "parallel -j 4 'srun -n1 --gres=gpu:1 python a.py {}' ::: 1 2 3",
    ),
    *of(
        "parallel-steps-serialise",
        "-n4|--mem=8G",
        "for i in {0..3}; do srun -n1 ./a $i & done; wait",
    ),
    *of(
        "",
        FOUR_RUNS,
        "for i in {0..3}; do srun --exact -n1 --gres=gpu:1 --mem=16G ./a $i & done; wait",
        "for i in {0..3}; do srun --exclusive -n1 --gpus=1 --mem=16G ./a $i & done; wait",
        "for i in {0..3}; do srun --overlap -n1 --gres=gpu:1 ./a $i & done; wait",
        "for i in {0..3}; do srun -n1 --gres=gpu:1 python a.py $i & wait $!; done",
        "srun --overlap -n1 nvidia-smi dmon &\nsrun -n1 python train.py",
        "srun -n1 ./a &\npid=$!\nwait $pid\nsrun -n1 ./b &\nwait",
        "( srun -n1 ./a; srun -n1 ./b ) &\nwait",
        "srun -n1 ./a &\nwait",
        "parallel -j 4 'srun --exact --mem=1G -n1 --gres=gpu:1 ./a {}' ::: 1 2 3",
        "cat list | xargs -I{} srun -n1 --gres=gpu:1 ./a {}",
    ),
    *of("", "-N1|-n32|--mem-per-cpu=2G", "for i in *; do srun --exact -n1 ./a $i & done; wait"),
    *of("", "-N1|-n32", "for i in *; do srun --exclusive -n1 ./a $i & done; wait"),
    *of(
        "",
        TWO_NODES_TASK_PER_NODE,
        "for n in $nodes; do srun -N1 -n1 -w $n ./a & done; wait",
        "srun -N1 -n1 ./a &\nsrun -N1 -n1 ./b &\nwait",
    ),
    *of("", HETJOB, "srun --het-group=0 ./a &\nsrun --het-group=1 ./b &\nwait"),
]

BACKGROUND = [
    *of(
        "background-no-wait",
        ONE_GPU,
        "python train.py &",
        "nohup python train.py > log 2>&1 &\necho started",
        "srun python train.py &\nsleep 5",
        "for i in 0 1; do python train.py $i & done",
        "./solver &\n./solver2 &",
        "python train.py &\nPID=$!\necho $PID",
        "bash run.sh &",
        "( python a.py; python b.py ) &\ndate",
        "f() { python train.py; }\nf &",
        "setsid nohup torchrun --standalone --nproc_per_node=1 train.py &\nexit 0",
        "screen -dmS x python train.py",
        "tmux new-session -d 'python train.py'",
        "python a.py --seed 1 &\npython a.py --seed 2",
        "for i in 1 2 3; do\n  python train.py $i &\n  wait -n\ndone",
        "for i in 1 2 3; do\n  python train.py $i &\n  sleep 2\ndone",
    ),
    *of(
        "",
        ONE_GPU,
        "python train.py &\nwait",
        "python t.py & wait $!",
        "python server.py &\npython client.py",
        "nvidia-smi -l 5 > x &\npython train.py",
        "tensorboard --logdir x &\npython train.py\nkill %1",
        "python train.py &\nPID=$!\nwhile kill -0 $PID; do sleep 5; done",
        "python train.py &\ntail --pid=$! -f /dev/null",
        "jupyter lab &\nsleep infinity",
        "trap wait EXIT\npython train.py &",
        "for i in 0 1; do python t.py $i & done\nwait -n\nwait",
        "for i in 0 1; do python t.py $i & done\nwhile [ -f busy ]; do sleep 9; done",
        "python train.py &\npids=$!\nfor p in $pids; do wait $p; done",
        "all() { wait; }\npython train.py &\nall",
        "unused() { python server.py & }\npython train.py",
    ),
]

CONTAINERS = [
    *of(
        "container-no-gpu-flag",
        ONE_GPU,
        "singularity exec x.sif python train.py",
        "apptainer run --bind /a:/b $SIF python train.py",
        "srun apptainer exec x.sif bash -c 'torchrun --nproc_per_node=1 train.py'",
        "srun singularity exec --cleanenv docker://nvcr.io/nvidia/pytorch:24.01 python train.py",
        "singularity run model.sif --input x",
        "docker run --rm -v /a:/b pytorch/pytorch python train.py",
        "podman run --rm img python train.py",
        "podman-hpc run --rm img python train.py",
    ),
    *of(
        "",
        ONE_GPU,
        "singularity exec --nv x.sif python train.py",
        "apptainer exec --nvccli x.sif python train.py",
        "apptainer exec --rocm x.sif python train.py",
        "export SINGULARITY_NV=1\nsingularity exec x.sif python train.py",
        "APPTAINER_NV=true apptainer exec x.sif python train.py",
        "singularity exec rocm62.sif python train.py",
        "module load LUMI\nsrun singularity exec $SIF python train.py",
        "apptainer exec $FLAGS x.sif python train.py",
        "apptainer exec x.sif cat /VERSION\napptainer exec --nv x.sif python train.py",
        "apptainer exec x.sif python preprocess.py\napptainer exec --nv x.sif python train.py",
        "singularity exec instance://foo python train.py",
        "singularity pull x.sif docker://a\nsingularity exec --nv x.sif python t.py",
        "docker run --gpus all img python train.py",
        "podman run --device nvidia.com/gpu=all img python train.py",
        "srun --container-image=x.sqsh python train.py",
        "shifter --image=x python train.py",
    ),
    *of("", CPUS, "singularity exec x.sif python train.py"),
    *of(
        "container-gpu-mask",
        "-N1|--gres=gpu:4",
        "srun --container-image=rocm.sqsh python serve.py",
        "export NVIDIA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES\n"
        "srun --container-image=x.sqsh python serve.py",
        "docker run --gpus '\"device=0,1\"' -e CUDA_VISIBLE_DEVICES=2,3 img python serve.py",
    ),
    *of(
        "container-gpu-mask",
        "-N1|--gpus-per-node=mi250:4",
        "srun --container-image=x.sqsh python serve.py",
    ),
    *of(
        "",
        "-N1|--gres=gpu:4",
        "srun --container-image=rocm.sqsh bash -c 'unset ROCR_VISIBLE_DEVICES; python serve.py'",
        "srun --container-image=rocm.sqsh env -u ROCR_VISIBLE_DEVICES python serve.py",
        "srun --container-image=pytorch.sqsh python serve.py",
        "docker run --gpus all -e CUDA_VISIBLE_DEVICES=2,3 img python serve.py",
    ),
    *of("", "-N1|--gres=gpu:8", "srun --container-image=rocm.sqsh python serve.py"),
    *of("", "-N1|--gres=gpu:4|--exclusive", "srun --container-image=rocm.sqsh python serve.py"),
]

CASES = [
    *(*SRUN_MISSING, *SEVERAL_NODES, *DOUBLE, *GPUS, *NOT_REQUESTED, *IDLE, *CPUS_OF_TASKS),
    *(*HETEROGENEOUS, *EXPORT, *NESTED, *SIDE_BY_SIDE, *BACKGROUND, *CONTAINERS),
]


def found(text: str, folder: Path, program: str = "") -> list[tuple[str, int]]:
    """Rule and line of all that the rules find."""
    if program:
        (folder / "train.py").write_text(program)
    job = load(str(folder / "job.sbatch"), text, folder=folder)
    rules = [rule for rule in registry.rules() if rule.name in RULES]
    return [
        (rule.name, finding.place.line)
        for rule in rules
        for finding in rule.check(job)
        if rule.holds_on(None)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.directives}|{case.body}"[-60:])
def test_a_launch(case: Case, tmp_path: Path) -> None:
    assert [name for name, _ in found(case.script, tmp_path, case.program)] == (
        case.expected.split()
    ), case.script


@pytest.mark.parametrize(
    ("directives", "body", "place"),
    [
        (TWO_NODES_TASK_PER_GPU, "date\npython train.py", ("srun-missing", 6)),
        # The launcher's own line, and not that of its options.
        (ONE_TASK, "srun -n1 \\\n  --gres=gpu:1 \\\n  torchrun --nproc_per_node=4 a.py", None),
        (TWO_NODES_TASK_PER_NODE, "L='torchrun -m'\ndate\nsrun $L a", ("standalone-multinode", 5)),
        (TWO_NODES_TASK_PER_GPU, "date\nsrun \\\n torchrun --nnodes=2 a.py", ("double-launch", 6)),
        ("-N1|-n2|--gres=gpu:1", "srun python train.py", ("tasks-exceed-gpus", 3)),
        ("-N1|--exclusive", "srun python a.py --device cuda", ("gpu-not-requested", 3)),
        ("-N1|-n1|--gpus-per-task=1", "srun python a.py --devices 2", ("gpu-bind-hides-peers", 4)),
        ("-N1|--export=NONE", "date\nsrun hostname", ("export-none-srun", 3)),
        ("-N1", "srun \\\n  --export=A=1 hostname", ("srun-export-drops-env", 4)),
        ("-N1", "./a &\n./b &\ndate", ("background-no-wait", 4)),
    ],
)
def test_where_it_is_said(
    directives: str, body: str, place: tuple[str, int] | None, tmp_path: Path
) -> None:
    expected = place or ("srun-narrows-gpus", 6)
    assert found(Case("", directives, body, "").script, tmp_path) == [expected]


@pytest.mark.parametrize(
    ("slurm", "is_lost"),
    [(None, True), ("21.08", False), ("22.05", True), ("23.02", True), ("23.11", False)],
)
def test_the_lines_on_which_srun_loses_the_cpus(slurm: str | None, *, is_lost: bool) -> None:
    script = Case("", "-N1|-n2|-c8|--gres=gpu:2", "srun python train.py", "").script
    rule = registry.find("cpus-not-inherited")
    assert rule is not None
    assert rule.holds_on(slurm) is is_lost
    (finding,) = rule.check(load("job.sbatch", script, slurm=slurm))
    (edit,) = finding.edits
    mended = script[: edit.start] + edit.text + script[edit.end :]
    assert "srun --cpus-per-task=$SLURM_CPUS_PER_TASK python train.py" in mended


@pytest.mark.parametrize(
    ("inner", "mended"),
    [
        ("srun hostname", "srun --overlap --mem=0 hostname"),
        ("srun --mem=1G hostname", "srun --overlap --mem=1G hostname"),
    ],
)
def test_an_inner_srun_shares_cpus_and_memory(inner: str, mended: str) -> None:
    script = Case("", ONE_GPU, f"srun bash -c '{inner}; python train.py'", "").script
    rule = registry.find("nested-srun-no-overlap")
    assert rule is not None
    (finding,) = rule.check(load("job.sbatch", script))
    (edit,) = finding.edits
    assert script[: edit.start] + edit.text + script[edit.end :] == script.replace(inner, mended)


@pytest.mark.parametrize(
    ("fact", "body", "count"),
    [
        ("true", "srun python train.py --backend nccl", 1),
        ("true", "srun --gpu-bind=none python train.py --backend nccl", 0),
        ("true", "srun python train.py", 0),
        ("false", "srun python train.py --backend nccl", 0),
        ("null", "srun python train.py --backend nccl", 0),
    ],
)
def test_ranks_that_are_kept_from_each_others_gpus(
    fact: str, body: str, count: int, tmp_path: Path
) -> None:
    """Only where the cluster is known to confine devices."""
    script = Case("", "-N1|-n4|--gpus-per-task=1", body, "").script
    profile = site(f"constrain_devices: {fact}", tmp_path)
    rule = registry.find("gpu-isolated-nccl")
    assert rule is not None
    assert len(list(rule.check(load("job.sbatch", script, profile=profile)))) == count


def site(fact: str, folder: Path) -> Profile:
    """A cluster of which one thing is known."""
    (folder / "site.yaml").write_text(f"name: site\n{fact}\n")
    return load_profile(str(folder / "site.yaml"), folder)


def test_a_site_that_refuses_memory_options(tmp_path: Path) -> None:
    step = "srun --exact -n1 --gres=gpu:1 ./a"
    script = Case("", "-N1|-n2|--gres=gpu:2", f"{step} &\n{step} &\nwait", "").script
    rule = registry.find("parallel-steps-serialise")
    assert rule is not None
    assert len(list(rule.check(load("job.sbatch", script)))) == 1
    profile = site("memory: omit", tmp_path)
    assert not list(rule.check(load("job.sbatch", script, profile=profile)))


@pytest.mark.parametrize(
    ("directives", "body", "severity"),
    [
        (FOUR_TASKS, "python train.py", WARNING),
        (FOUR_TASKS, "python train.py --distributed", ERROR),
        ("-N1|--exclusive", "python train.py --device cuda", WARNING),
        ("-N1", "srun python train.py --device cuda", ERROR),
        ("-N1", "python a.py 1 &\npython a.py 2", WARNING),
        (ONE_TASK, "srun --gpu-bind=closest python a.py --devices 4", WARNING),
        (TWO_NODES_TASK_PER_NODE, "accelerate launch --config_file x.yaml a.py", WARNING),
        (ONE_GPU, "module load x\nsrun --export=NONE /opt/solver", WARNING),
    ],
)
def test_how_sure_it_is(directives: str, body: str, severity: str) -> None:
    job = load("job.sbatch", Case("", directives, body, "").script)
    rules = [rule for rule in registry.rules() if rule.name in RULES]
    given = [finding.severity or rule.severity for rule in rules for finding in rule.check(job)]
    assert given == [severity]


@pytest.mark.parametrize(("slurm", "count"), [("20.11", 0), ("22.05", 1)])
def test_an_exclusive_job_once_had_the_gpus(slurm: str, count: int) -> None:
    rule = registry.find("gpu-not-requested")
    assert rule is not None
    script = Case("", "-N1|--exclusive", "srun python a.py --device cuda", "").script
    assert len(list(rule.check(load("job.sbatch", script, slurm=slurm)))) == count


@pytest.mark.parametrize(
    ("asked", "body", "slurm", "lines"),
    [
        ("--gpus-per-node=2", "srun --gres=gpu:1 ./a", "26.05", [4]),
        ("--gpus-per-node=2", "srun --gres=gpu:1 ./a", "24.11", []),
        ("--gpus-per-node=2", "srun --gres=gpu:1 ./a", None, []),
        ("--gpus-per-node=2", "srun --gpus-per-node=1 ./a", "26.05", []),
        ("--gpus-per-node=2", "unset SLURM_GPUS_PER_NODE; srun --gres=gpu:1 ./a", "26.05", []),
        ("--gpus-per-node=2", "srun --gres=nvme:1 ./a", "26.05", []),
        ("--gres=gpu:2", "srun --gres=gpu:1 ./a", "26.05", []),
    ],
)
def test_gpus_of_a_step_are_asked_for_as_those_of_its_job(
    asked: str, body: str, slurm: str | None, lines: list[int]
) -> None:
    script = f"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH {asked}\n{body}\n"
    rule = registry.find("gpu-request-conflict")
    assert rule is not None
    found = rule.check(load("job.sbatch", script, slurm=slurm))
    assert [finding.place.line for finding in found] == lines
