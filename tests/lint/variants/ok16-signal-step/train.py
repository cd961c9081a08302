import signal
import sys
import torch

net = torch.nn.Linear(4, 4).cuda()


def save(signum, frame):
    torch.save(net.state_dict(), "last.pt")
    sys.exit(75)


signal.signal(signal.SIGUSR1, save)
while True:
    net(torch.randn(4, 4, device="cuda")).sum().backward()
