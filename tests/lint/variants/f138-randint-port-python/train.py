import os
import random

import torch
import torch.distributed as dist

os.environ["MASTER_PORT"] = str(random.randint(20000, 29999))
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
dist.init_process_group("nccl", rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))
