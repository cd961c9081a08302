import argparse

from torch.utils.data import DataLoader
from data import ds

p = argparse.ArgumentParser()
p.add_argument("--num-workers", type=int, default=2)
args = p.parse_args()
loader = DataLoader(ds, batch_size=32, num_workers=args.num_workers)
