from lightning.pytorch import Trainer
from data import Data
from model import Net

trainer = Trainer(accelerator="gpu", devices=2, strategy="ddp", max_epochs=10)
trainer.fit(Net(), datamodule=Data())
