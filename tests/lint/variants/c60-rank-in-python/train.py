import os

import torch
import torch.distributed as dist

rank = int(os.environ["SLURM_PROCID"])
local_rank = int(os.environ["SLURM_LOCALID"])
os.environ.update(RANK=str(rank), LOCAL_RANK=str(local_rank), WORLD_SIZE=os.environ["SLURM_NTASKS"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
print(dist.get_rank(), torch.cuda.current_device())
dist.destroy_process_group()
