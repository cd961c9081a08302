import lightning.pytorch as pl
from model import Data, Net

pl.Trainer(accelerator="gpu", devices=4, strategy="ddp").fit(Net(), Data())
