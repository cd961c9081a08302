import torch, torch.distributed as dist
from model import Net
dist.init_process_group("nccl")
net = Net().to("cuda:0")
net = torch.nn.parallel.DistributedDataParallel(net)
