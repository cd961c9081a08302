import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from model import Net

dist.init_process_group("nccl")
rank = dist.get_rank()
device = torch.device(f"cuda:{rank}")
net = DDP(Net().to(device), device_ids=[rank])
