import argparse
import torch
from model import evaluate

p = argparse.ArgumentParser()
p.add_argument("--seed", type=int)
torch.manual_seed(p.parse_args().seed)
print(evaluate(device=torch.device("cuda:0")))
