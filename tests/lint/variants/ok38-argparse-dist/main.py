import argparse
import os

import torch
import torch.distributed as dist


def setup():
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        rank, world, local = (int(os.environ[k]) for k in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    elif "SLURM_PROCID" in os.environ:
        rank, world, local = (int(os.environ[k]) for k in ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"))
    else:
        return 0, 1, 0
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", init_method="env://", rank=rank, world_size=world)
    return rank, world, local


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    args = parser.parse_args()
    rank, world, local = setup()
    net = torch.nn.Linear(8, 8).cuda(local)
    if world > 1:
        net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[local])
    for _ in range(args.epochs):
        net(torch.randn(4, 8, device=f"cuda:{local}")).sum().backward()
    if rank == 0:
        module = net.module if world > 1 else net
        torch.save(module.state_dict(), "out.pt")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
