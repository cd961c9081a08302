import lightning as L
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class Classifier(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))

    def training_step(self, batch, _):
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.net(images), labels)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main() -> None:
    data = datasets.CIFAR10("data", transform=transforms.ToTensor())
    loader = DataLoader(data, batch_size=128, shuffle=True, num_workers=7, pin_memory=True)
    trainer = L.Trainer(accelerator="gpu", devices=4, num_nodes=2, strategy="ddp", max_epochs=90)
    trainer.fit(Classifier(), loader)


if __name__ == "__main__":
    main()
