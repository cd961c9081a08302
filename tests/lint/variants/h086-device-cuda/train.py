import os, torch, torch.distributed as dist
rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
dist.init_process_group("nccl", rank=rank, world_size=world)
net = torch.nn.Linear(8, 8).to(torch.device("cuda"))
net = torch.nn.parallel.DistributedDataParallel(net)
