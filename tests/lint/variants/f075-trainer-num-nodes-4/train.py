import lightning as L
from data import loader
from model import Net

trainer = L.Trainer(
    accelerator="gpu",
    devices=4,
    num_nodes=4,
    strategy="ddp",
)
trainer.fit(Net(), loader())
