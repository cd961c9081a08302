import torch
from torch import nn
from data import batches
from model import Net

net = nn.DataParallel(Net()).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in batches():
    opt.zero_grad()
    net(x.cuda()).sum().backward()
    opt.step()
