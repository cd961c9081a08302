import os

from torch.utils.data import DataLoader
from data import ds

cpus = int(os.environ.get("SLURM_CPUS_PER_TASK", len(os.sched_getaffinity(0))))
print("node has", os.cpu_count(), "cores, we use", cpus)
loader = DataLoader(ds, batch_size=64, num_workers=cpus)
