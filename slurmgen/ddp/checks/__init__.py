"""Mistakes that only show while training: found in the first steps, said once, with the fix.

``SLURMGEN_CHECKS=off`` leaves them all out. None changes a number, waits for another rank or fails
the run: what can't be looked at is let be.

A check is either a function of what all ranks have seen, in CHECKS, or a class that watches one
function of torch's (`saves`, `epochs`, `data_parallel`). Its docstring says which mistake, why it
is one, and how it is mended.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch.distributed import HashStore

from slurmgen.ddp.checks import devices, gradients, loader_workers, same_data
from slurmgen.ddp.checks.exchange import Exchange
from slurmgen.ddp.checks.watch import Watch

if TYPE_CHECKING:
    import torch

    from slurmgen.ddp.checks.facts import Check
    from slurmgen.ddp.launch.identity import Identity

CHECKS: dict[str, Check] = {
    "same-data": same_data.check,
    "gradients": gradients.check,
    "shared-gpu": devices.check_shared,
    "idle-gpu": devices.check_idle,
    "loader-workers": loader_workers.check,
}


def install(identity: Identity, own: torch.device, store: torch.distributed.Store | None) -> Watch:
    """Watch from here on. store: where the ranks have met, None for a single one."""
    exchange = Exchange(store or HashStore(), identity.rank, identity.world_size)
    return Watch(identity, own, exchange, CHECKS, os.environ)
