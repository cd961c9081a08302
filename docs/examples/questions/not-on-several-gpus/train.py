import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

rank = int(os.environ["SLURM_PROCID"])
world_size = int(os.environ["SLURM_NTASKS"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", rank=rank, world_size=world_size)

torch.manual_seed(0)
dataset = TensorDataset(torch.randn(1024, 32), torch.randn(1024, 1))
sampler = DistributedSampler(dataset, num_replicas=world_size, rank=0)
loader = DataLoader(dataset, batch_size=16, sampler=sampler)
model = DistributedDataParallel(nn.Linear(32, 1).to(rank), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.to(rank)), y.to(rank))
        loss.backward()
        optimizer.step()
    print(f"rank {rank}, epoch {epoch}")
if rank == 0:
    torch.save(model.module.state_dict(), "model.pt")
    print(f"{world_size} ranks trained: loss {loss.item():.3f}")
dist.destroy_process_group()
