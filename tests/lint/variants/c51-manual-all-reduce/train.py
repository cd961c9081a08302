import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from dataset import Images
from model import Net

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
torch.manual_seed(0)
net = Net().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ds = Images("train")
sampler = DistributedSampler(ds)
for epoch in range(10):
    sampler.set_epoch(epoch)
    for x in DataLoader(ds, batch_size=64, sampler=sampler):
        opt.zero_grad()
        net(x.cuda()).sum().backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        opt.step()
dist.destroy_process_group()
