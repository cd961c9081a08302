import os

import torch
import torch.distributed as dist

torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
dist.init_process_group(backend="nccl", init_method="env://")
