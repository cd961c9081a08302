import lightning as L
from torch.utils.data import DataLoader

from data import train_set
from model import LitNet

trainer = L.Trainer(accelerator="gpu", devices=4, num_nodes=2, strategy="ddp", max_epochs=50)
trainer.fit(LitNet(), DataLoader(train_set, batch_size=64, shuffle=True, num_workers=5))
