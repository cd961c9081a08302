import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from data import train_set

dist.init_process_group("gloo")
net = DDP(torch.nn.Linear(20, 2))
sampler = DistributedSampler(train_set)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for x, y in DataLoader(train_set, batch_size=32, sampler=sampler):
        torch.nn.functional.cross_entropy(net(x), y).backward()
if dist.get_rank() == 0:
    torch.save(net.module.state_dict(), "cpu.pt")
dist.destroy_process_group()
