import torch
import torch.distributed as dist


def save(net, path):
    if dist.get_rank() != 0:
        return
    torch.save(net.module.state_dict(), path)
