import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

rank = int(os.environ["SLURM_PROCID"])
local_rank = int(os.environ["SLURM_LOCALID"])
dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
print(f"rank {rank} has {torch.cuda.device_count()} GPU(s)")
os.environ["CUDA_VISIBLE_DEVICES"] = str(local_rank)
torch.cuda.set_device(local_rank)

torch.manual_seed(0)
dataset = TensorDataset(torch.randn(1024, 32), torch.randn(1024, 1))
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=16, sampler=sampler)
model = DistributedDataParallel(nn.Linear(32, 1).cuda(), device_ids=[local_rank])
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
