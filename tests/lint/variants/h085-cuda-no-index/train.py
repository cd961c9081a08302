import torch, torch.distributed as dist
from model import Net
dist.init_process_group("nccl")
net = torch.nn.parallel.DistributedDataParallel(Net().cuda())
