import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(i, n):
    rank = int(os.environ["SLURM_NODEID"]) * n + i
    torch.cuda.set_device(i)
    dist.init_process_group("nccl", rank=rank, world_size=n * int(os.environ["SLURM_NNODES"]))
    dist.destroy_process_group()


if __name__ == "__main__":
    n = torch.cuda.device_count()
    mp.spawn(worker, args=(n,), nprocs=n)
