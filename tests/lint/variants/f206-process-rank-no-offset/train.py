import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def main_worker(gpu, ngpus):
    world = ngpus * int(os.environ["SLURM_NNODES"])
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl", init_method="env://", world_size=world, rank=gpu)


if __name__ == "__main__":
    n = torch.cuda.device_count()
    mp.spawn(main_worker, nprocs=n, args=(n,))
