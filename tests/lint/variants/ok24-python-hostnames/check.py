import os
import subprocess

import torch
import torch.distributed as dist

hosts = subprocess.check_output(["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]], text=True).split()
os.environ["MASTER_ADDR"] = hosts[0]
os.environ["MASTER_PORT"] = str(10000 + int(os.environ["SLURM_JOB_ID"]) % 20000)
local = int(os.environ["SLURM_LOCALID"])
device = torch.device("cuda", local)
torch.cuda.set_device(device)
dist.init_process_group("nccl", rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))
x = torch.ones(1, device=device)
dist.all_reduce(x)
print(os.environ["SLURM_PROCID"], x.item(), flush=True)
dist.destroy_process_group()
