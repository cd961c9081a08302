import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(local, gpus):
    rank = int(os.environ["SLURM_NODEID"]) * gpus + local
    world = int(os.environ["SLURM_NNODES"]) * gpus
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    total = torch.ones(1, device="cuda")
    dist.all_reduce(total)
    if rank == 0:
        print("ranks:", int(total.item()))
    dist.destroy_process_group()


if __name__ == "__main__":
    n = torch.cuda.device_count()
    mp.spawn(worker, args=(n,), nprocs=n)
