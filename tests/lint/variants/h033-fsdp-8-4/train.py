import lightning as L
from model import Net, data
trainer = L.Trainer(accelerator="gpu", devices=8, num_nodes=1, strategy="fsdp", max_epochs=20)
trainer.fit(Net(), data())
