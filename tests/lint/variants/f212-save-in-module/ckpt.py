import torch


def save(net, path):
    torch.save(net.module.state_dict(), path)
