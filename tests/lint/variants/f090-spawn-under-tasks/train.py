import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, world):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)


if __name__ == "__main__":
    mp.spawn(worker, args=(4,), nprocs=4)
