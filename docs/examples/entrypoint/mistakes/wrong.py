import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

rank = int(os.environ["RANK"])
device = torch.device("cpu")
if torch.cuda.is_available():
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if device.type == "cuda" else "gloo")

torch.manual_seed(0)
dataset = TensorDataset(torch.randn(1024, 32), torch.randn(1024, 1))
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=16, sampler=sampler, num_workers=4)
model = nn.Linear(32, 1).to(device)
parallel = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f}")
torch.save(model.state_dict(), "model.pt")
dist.destroy_process_group()
