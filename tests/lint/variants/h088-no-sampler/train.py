import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from data import train_set
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
net = DDP(torch.nn.Linear(8, 8).cuda(), device_ids=[local])
loader = torch.utils.data.DataLoader(train_set, batch_size=64, shuffle=True)
for x in loader:
    net(x.cuda()).sum().backward()
