import os
import socket

import torch
import torch.distributed as dist

os.environ["MASTER_ADDR"] = socket.gethostname()
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
dist.init_process_group("nccl", rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))
