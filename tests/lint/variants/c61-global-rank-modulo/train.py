import os

import torch
import torch.distributed as dist

rank = int(os.environ["SLURM_PROCID"])
gpu = rank % torch.cuda.device_count()
torch.cuda.set_device(gpu)
dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
net = torch.nn.Linear(4, 4).to(f"cuda:{gpu}")
dist.destroy_process_group()
