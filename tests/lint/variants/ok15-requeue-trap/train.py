import os
import signal
import sys

import torch
import torch.distributed as dist

stop = False


def on_usr1(number, frame):
    global stop
    stop = True


signal.signal(signal.SIGUSR1, on_usr1)
rank = int(os.environ["SLURM_PROCID"])
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
for step in range(100000):
    net(torch.randn(8, 4).cuda()).sum().backward()
    flag = torch.tensor([float(stop)], device="cuda")
    dist.all_reduce(flag)
    if flag.item() > 0:
        if rank == 0:
            torch.save(net.module.state_dict(), "last.pt")
        dist.barrier()
        dist.destroy_process_group()
        sys.exit(0)
dist.destroy_process_group()
