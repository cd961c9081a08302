import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

rank = int(os.environ["SLURM_PROCID"])
world_size = int(os.environ["SLURM_NTASKS"])
dist.init_process_group("nccl", rank=rank, world_size=world_size)

dataset = TensorDataset(torch.randn(1024, 32), torch.randn(1024, 1))
sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank)
loader = DataLoader(dataset, batch_size=16, sampler=sampler)
model = DistributedDataParallel(nn.Linear(32, 1).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for epoch in range(3):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
if rank == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
