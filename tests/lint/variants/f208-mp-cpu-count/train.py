from multiprocessing import cpu_count

from torch.utils.data import DataLoader
from data import ds

workers = cpu_count() - 2
loader = DataLoader(ds, batch_size=64, num_workers=workers)
