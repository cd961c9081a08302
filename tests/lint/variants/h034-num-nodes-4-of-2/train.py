from lightning.pytorch import Trainer
from model import Net, data
Trainer(accelerator="gpu", devices=4, num_nodes=4, strategy="ddp").fit(Net(), data())
