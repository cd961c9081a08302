import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from model import Net

rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
net = DDP(Net().cuda(), device_ids=[local_rank])
for step in range(100):
    net(torch.randn(8, 16).cuda()).sum().backward()
torch.save(torch.get_rng_state(), f"rng-{rank}.pt")
dist.destroy_process_group()
