"""What this process was told: in place of train.py it shows a launch in seconds."""

from os import environ

names = "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"
told = " ".join(f"{name}={environ.get(name, '-')}" for name in names)
task = f"{environ['SLURMD_NODENAME']} task {environ['SLURM_PROCID']}/{environ['SLURM_NTASKS']}"
print(f"{task}: {told} GPUs={environ.get('CUDA_VISIBLE_DEVICES', '-')}\n", end="", flush=True)
