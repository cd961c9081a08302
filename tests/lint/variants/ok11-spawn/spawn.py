import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def worker(rank, world):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    net = DDP(torch.nn.Linear(32, 4).cuda(rank), device_ids=[rank])
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(1000):
        opt.zero_grad()
        net(torch.randn(64, 32, device=rank)).sum().backward()
        opt.step()
    if rank == 0:
        torch.save(net.module.state_dict(), "net.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    gpus = torch.cuda.device_count()
    mp.spawn(worker, args=(gpus,), nprocs=gpus, join=True)
