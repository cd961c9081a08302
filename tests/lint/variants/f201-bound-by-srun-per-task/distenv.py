import os

import torch
import torch.distributed as dist


def setup():
    rank = int(os.environ["SLURM_PROCID"])
    local = int(os.environ.get("SLURM_LOCALID", 0))
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
