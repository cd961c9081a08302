import os

import torch
import torch.distributed as dist

port = 20000 + int(os.environ["SLURM_JOB_ID"]) % 10000
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
dist.init_process_group(
    "nccl",
    init_method=f"tcp://localhost:{port}",
    rank=int(os.environ["SLURM_PROCID"]),
    world_size=int(os.environ["SLURM_NTASKS"]),
)
