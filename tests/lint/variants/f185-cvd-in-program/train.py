import os

os.environ["CUDA_VISIBLE_DEVICES"] = "0"
import torch

print(torch.cuda.get_device_name())
