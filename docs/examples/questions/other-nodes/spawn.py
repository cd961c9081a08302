import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def main(local_rank, world_size):
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", rank=local_rank, world_size=world_size)
    # train
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size = int(os.environ["WORLD_SIZE"])
    mp.spawn(main, args=(world_size,), nprocs=world_size)
