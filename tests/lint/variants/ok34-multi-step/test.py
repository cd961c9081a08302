import argparse
import torch
from model import Net, score

p = argparse.ArgumentParser()
p.add_argument("--checkpoint", required=True)
net = Net().cuda()
net.load_state_dict(torch.load(p.parse_args().checkpoint, map_location="cuda"))
print(score(net.eval()))
