import os, torch, torch.distributed as dist
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
dist.init_process_group("nccl", rank=int(os.environ["SLURM_PROCID"]), world_size=torch.cuda.device_count())
