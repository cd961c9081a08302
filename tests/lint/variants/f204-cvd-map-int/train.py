import os

import torch

visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
gpus = list(map(int, visible.split(",")))
print("using", len(gpus), torch.cuda.get_device_name(0))
