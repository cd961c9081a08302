import torch
from torch.utils.data import Dataset


class Events(Dataset):
    """Random events in place of the detector's."""

    width = 8

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __len__(self) -> int:
        return 1024

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(index)
        return torch.randn(self.width, generator=generator), torch.zeros(1)
