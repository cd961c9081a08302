import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.utils.data import DataLoader, DistributedSampler

from data import tokens
from model import Decoder

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
model = FSDP(Decoder(), device_id=local)
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-4)
sampler = DistributedSampler(tokens)
loader = DataLoader(tokens, batch_size=4, sampler=sampler, num_workers=8, drop_last=True)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for batch in loader:
        optimiser.zero_grad()
        model(batch.cuda()).backward()
        optimiser.step()
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(offload_to_cpu=True, rank0_only=True)):
    state = model.state_dict()
if dist.get_rank() == 0:
    torch.save(state, "model.pt")
dist.destroy_process_group()
