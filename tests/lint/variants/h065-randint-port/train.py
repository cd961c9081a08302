import os, random, torch, torch.distributed as dist
os.environ["MASTER_PORT"] = str(random.randint(10000, 20000))
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
dist.init_process_group("nccl", rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))
