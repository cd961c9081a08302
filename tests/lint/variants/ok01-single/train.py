import torch
from torch.utils.data import DataLoader
from data import train_set
from model import Net

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = Net().to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(10):
    for x, y in DataLoader(train_set, batch_size=128, shuffle=True, num_workers=4):
        opt.zero_grad()
        torch.nn.functional.cross_entropy(net(x.to(device)), y.to(device)).backward()
        opt.step()
torch.save(net.state_dict(), "net.pt")
