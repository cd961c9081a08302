import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from dataset import Images
from model import Net

local = int(os.environ["SLURM_LOCALID"])
torch.cuda.set_device(local)
dist.init_process_group("nccl", rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))
net = DDP(Net().cuda(), device_ids=[local])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ds = Images("train")
sampler = DistributedSampler(ds)
loader = DataLoader(ds, batch_size=64, sampler=sampler)
for epoch in range(90):
    sampler.set_epoch(epoch)
    for x in loader:
        opt.zero_grad()
        net(x.cuda()).sum().backward()
        opt.step()
    torch.save({"epoch": epoch, "net": net.module.state_dict()}, "last.pt")
