import lightning.pytorch as pl
from model import Net, data
pl.Trainer(accelerator="gpu", devices=4, num_nodes=1, strategy="ddp").fit(Net(), data())
