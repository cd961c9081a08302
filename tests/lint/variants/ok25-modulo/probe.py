import os
import torch
import torch.distributed as dist

local = int(os.environ["SLURM_LOCALID"])
device = local if torch.cuda.device_count() > 1 else 0
torch.cuda.set_device(device)
dist.init_process_group("gloo", rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))
dist.barrier()
print(torch.cuda.get_device_name())
dist.destroy_process_group()
