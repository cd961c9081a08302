import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from model import Net

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dist.init_process_group("nccl")
net = DDP(Net().to(device))
