import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from dataset import Images
from model import Net

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
net = DDP(Net().cuda(), device_ids=[local_rank])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ds = Images("train")
sampler = DistributedSampler(ds, num_replicas=dist.get_world_size(), rank=0)
for epoch in range(10):
    sampler.set_epoch(epoch)
    for x in DataLoader(ds, batch_size=64, sampler=sampler):
        opt.zero_grad()
        net(x.cuda()).sum().backward()
        opt.step()
