import lightning as L
from model import Data, Net

trainer = L.Trainer(accelerator="gpu", devices=4, num_nodes=2, strategy="ddp", max_epochs=20)
trainer.fit(Net(), datamodule=Data())
