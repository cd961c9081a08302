import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from dataset import Events


def setup() -> tuple[int, int]:
    rank = int(os.environ["SLURM_PROCID"])
    world_size = int(os.environ["SLURM_NTASKS"])
    local_rank = int(os.environ["SLURM_LOCALID"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    return rank, local_rank


def main() -> None:
    rank, local_rank = setup()
    events = Events("data")
    sampler = DistributedSampler(events)
    loader = DataLoader(events, batch_size=16, sampler=sampler, num_workers=16)
    model = torch.nn.Linear(events.width, 1).to(local_rank)
    model = DistributedDataParallel(model, device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(30):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.mse_loss(model(x.to(local_rank)), y.to(local_rank))
            loss.backward()
            optimizer.step()
        if rank == 0:
            torch.save(model.module.state_dict(), "tracking.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
