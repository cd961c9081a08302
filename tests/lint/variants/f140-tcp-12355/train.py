import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, world):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:12355", rank=rank, world_size=world)


if __name__ == "__main__":
    n = torch.cuda.device_count()
    mp.spawn(worker, args=(n,), nprocs=n)
