import os

import torch

visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
print("Slurm gave", visible, "count", len(visible.split(",")), torch.cuda.device_count())
