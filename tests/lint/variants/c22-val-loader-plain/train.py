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
train, val = Images("train"), Images("val")
sampler = DistributedSampler(train)
train_loader = DataLoader(train, batch_size=64, sampler=sampler)
val_loader = DataLoader(val, batch_size=64, shuffle=False)
for epoch in range(90):
    sampler.set_epoch(epoch)
    for x in train_loader:
        opt.zero_grad()
        net(x.cuda()).sum().backward()
        opt.step()
    if dist.get_rank() == 0:
        with torch.no_grad():
            print(sum(net.module(x.cuda()).sum().item() for x in val_loader))
        torch.save(net.module.state_dict(), "last.pt")
    dist.barrier()
dist.destroy_process_group()
