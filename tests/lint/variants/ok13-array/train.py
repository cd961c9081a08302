import argparse
import torch
from model import fit

p = argparse.ArgumentParser()
p.add_argument("--fold", type=int, required=True)
p.add_argument("--lr", type=float, default=1e-3)
a = p.parse_args()
net = fit(fold=a.fold, lr=a.lr, device="cuda")
torch.save(net.state_dict(), f"fold{a.fold}.pt")
