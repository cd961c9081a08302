import lightning as L
from model import Net

fabric = L.Fabric(accelerator="cuda", devices=4, strategy="ddp")
fabric.launch()
net = fabric.setup(Net())
