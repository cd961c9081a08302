import torch
from torch import nn
from torch.utils.data import TensorDataset

from slurmgen import ddp

ddp.init()
device = ddp.device()

torch.manual_seed(0)
dataset = TensorDataset(torch.randn(1024, 32), torch.randn(1024, 1))
loader = ddp.loader(dataset, global_batch_size=128, num_workers=1)
model = nn.Linear(32, 1)
parallel = ddp.wrap(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(parallel(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
    mean = ddp.all_mean(loss.item())
    ddp.print0(f"epoch {epoch}: loss {mean:.3f}")
ddp.save(model.state_dict(), "model.pt")
ddp.shutdown()
