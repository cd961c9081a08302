import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import train_set
from model import Net

rank = int(os.environ["SLURM_PROCID"])
local = int(os.environ["SLURM_LOCALID"])
world = int(os.environ["SLURM_NTASKS"])


def main():
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    net = DDP(Net().cuda(), device_ids=[local])
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    sampler = DistributedSampler(train_set, shuffle=True)
    loader = DataLoader(train_set, batch_size=64, sampler=sampler, num_workers=4, pin_memory=True)
    for epoch in range(30):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(net(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            torch.save(net.module.state_dict(), f"net-{epoch}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
