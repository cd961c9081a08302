import torch
from model import Net

net = Net().to("cuda")
for step in range(1000):
    net.step(torch.randn(8, 3, 64, 64, device="cuda"))
