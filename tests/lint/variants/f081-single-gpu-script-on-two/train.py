import torch
from data import batches
from model import Net

net = Net().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in batches():
    opt.zero_grad()
    net(x.cuda()).sum().backward()
    opt.step()
