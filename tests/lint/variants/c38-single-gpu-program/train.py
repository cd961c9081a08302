import torch
from torch.utils.data import DataLoader
from dataset import Images
from model import Net

net = Net().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(10):
    for x in DataLoader(Images("train"), batch_size=64, shuffle=True, num_workers=4):
        opt.zero_grad()
        net(x.cuda()).sum().backward()
        opt.step()
    torch.save(net.state_dict(), "last.pt")
