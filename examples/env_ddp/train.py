"""A rank of a process group, with torch alone: whatever sets env:// variables can start it."""

import os
import socket

import torch
import torch.distributed as dist


def main() -> None:
    local_rank = int(os.environ["LOCAL_RANK"])
    gpus = torch.cuda.device_count()
    if gpus:
        # Slurm may have bound each task to one GPU, which then is index 0 everywhere.
        torch.cuda.set_device(local_rank if gpus > 1 else 0)
    dist.init_process_group("nccl" if gpus else "gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    total = torch.tensor([rank + 1.0], device="cuda" if gpus else "cpu")
    dist.all_reduce(total)
    expected = world_size * (world_size + 1) / 2
    print(
        f"rank {rank} of {world_size} on {socket.gethostname()} local {local_rank}"
        f" sum {total.item():g}\n",
        end="",  # text and line end in one piece, or ranks tear each other's lines apart
        flush=True,
    )
    dist.destroy_process_group()
    if total.item() != expected:
        raise SystemExit(f"rank {rank}: the sum is {total.item():g}, not {expected:g}")


if __name__ == "__main__":
    main()
