import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils import data
from dataset import Images
from model import Net


def get_loader(batch_size):
    return data.DataLoader(Images("train"), batch_size, shuffle=True)


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
net = DDP(Net().cuda(), device_ids=[local_rank])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in get_loader(64):
    opt.zero_grad()
    net(x.cuda()).sum().backward()
    opt.step()
