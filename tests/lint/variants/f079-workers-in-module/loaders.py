from torch.utils.data import DataLoader
from data import ds

WORKERS = 12


def make_loader():
    return DataLoader(ds, batch_size=16, num_workers=WORKERS)
