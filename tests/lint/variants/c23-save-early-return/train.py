import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from ckpt import save
from model import Net

local = int(os.environ["SLURM_LOCALID"])
torch.cuda.set_device(local)
dist.init_process_group("nccl", rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))
net = DDP(Net().cuda(), device_ids=[local])
for step in range(100):
    net(torch.randn(8, 16).cuda()).sum().backward()
save(net, "model.pt")
dist.destroy_process_group()
