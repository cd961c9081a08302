import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from model import Net


def main():
    dist.init_process_group(backend="nccl")
    net = Net().cuda()
    net = DistributedDataParallel(net)
    out = net(torch.randn(8, 16).cuda())
    out.sum().backward()
    dist.destroy_process_group()


main()
