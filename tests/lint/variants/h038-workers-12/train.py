from torch.utils.data import DataLoader
from data import train_set
loader = DataLoader(train_set, batch_size=128, shuffle=True, num_workers=12, pin_memory=True)
