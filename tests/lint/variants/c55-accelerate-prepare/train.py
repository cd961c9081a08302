from accelerate import Accelerator
from torch.optim import AdamW
from torch.utils.data import DataLoader
from dataset import Images
from model import Net

accelerator = Accelerator()
net = Net()
net, opt, loader = accelerator.prepare(
    net, AdamW(net.parameters()), DataLoader(Images("train"), batch_size=32, shuffle=True)
)
for x in loader:
    opt.zero_grad()
    accelerator.backward(net(x).sum())
    opt.step()
accelerator.wait_for_everyone()
if accelerator.is_main_process:
    accelerator.save(accelerator.unwrap_model(net).state_dict(), "net.pt")
