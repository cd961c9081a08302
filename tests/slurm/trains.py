"""A training that notes every loss to the last bit, and can be interrupted in its first run.

Run from a folder of the job's own. `untouched` goes through at once; `interrupted` waits after a
few steps until the file `go` is there or a signal has come, and takes its steps slowly from then.
"""

import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from slurmgen import ddp
from slurmgen.ddp.launch import signals

READY, EPOCHS, BATCHES = 8, 3, 24

held = sys.argv[1] == "interrupted" and os.environ["SLURMGEN_RESTART"] == "0"
ddp.init()
torch.manual_seed(3)
random.seed(ddp.rank())
Path(f"pid.{ddp.rank()}").write_text(f"{os.getpid()}\n")
model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 1))
parallel = ddp.wrap(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
data = torch.randn(BATCHES * 8, 8, generator=torch.Generator().manual_seed(1))
loader: Any = ddp.loader(data, global_batch_size=8)
run = ddp.resume("saved", every_steps=3, model=parallel, optimizer=optimizer, schedule=schedule)
with open(f"losses.{ddp.rank()}", "a", buffering=1) as losses:
    for _ in run.epochs(EPOCHS):
        for inputs in run.batches(loader):
            loss = (parallel(inputs) - inputs.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.write(f"{run.step} {loss.item().hex()} {random.random()}\n")
            if held and run.step >= READY:
                if run.step == READY:
                    print(f"rank {ddp.rank()} ready", flush=True)
                while not Path("go").exists() and signals.received() is None:
                    time.sleep(0.05)
                time.sleep(0.05)
ddp.shutdown()
