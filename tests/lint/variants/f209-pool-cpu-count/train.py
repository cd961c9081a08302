import os

import torch

torch.set_num_threads(os.cpu_count())
