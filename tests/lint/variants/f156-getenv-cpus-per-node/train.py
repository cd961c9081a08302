import os

import torch

torch.set_num_threads(int(os.getenv("SLURM_JOB_CPUS_PER_NODE")))
