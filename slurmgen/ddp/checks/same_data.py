"""The check for ranks that train on the same data."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from slurmgen.ddp.checks import gradients
from slurmgen.ddp.checks.facts import COMPARED, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.ddp.checks.facts import Facts

_SHARES = (
    "give each its share, by ddp.loader(dataset, global_batch_size=N) or DataLoader(dataset,"
    " sampler=DistributedSampler(dataset))"
)


def check(everyone: Sequence[Facts]) -> Iterator[str]:
    """Ranks that step with the same batches, or that each go through the whole data set.

    Mistake: a DataLoader without a distributed sampler, or a sampler told the same rank on all.
    Why: each rank computes what the others do, and more GPUs change nothing but the bill. Shuffled
    by seeds of their own the batches differ, but an epoch takes as many steps as on one GPU.
    Fix: ``ddp.loader``, or a DistributedSampler that finds its rank by itself.

    Silent where ranks may rightly share batches (tensor parallelism, a DDP of part of the ranks),
    and for data that says nothing: batches that don't change, as a benchmark's may be.
    """
    if len(everyone) < 2:
        return
    kinds = {one.optimizers[0].kind if one.optimizers else "other" for one in everyone}
    if len(kinds) > 1 or kinds == {"other"}:
        return
    for key in (_content, _choice):
        alike: dict[str, list[int]] = defaultdict(list)
        for one in everyone:
            if marks := key(one):
                alike[marks].append(one.rank)
        ranks = max(alike.values(), key=len, default=[])
        if len(ranks) < 2:
            continue
        if kinds != {"ddp"} and (len(ranks) < len(everyone) or gradients.partly_shared(everyone)):
            continue
        fix = (
            "leave rank= and num_replicas= of its DistributedSampler to torch"
            if any(batch.indices for one in everyone for batch in one.batches)
            else _SHARES
        )
        yield (
            f"{listed(ranks)} train on the same batches, so each computes what the others do: {fix}"
        )
        return
    if kinds == {"ddp"} and everyone[0].whole and len({one.whole for one in everyone}) == 1:
        yield (
            f"each of {len(everyone)} ranks goes through all {everyone[0].samples} samples in an"
            f" epoch, so an epoch takes as many steps as on one: {_SHARES}"
        )


def _content(one: Facts) -> str:
    if len(one.batches) < COMPARED:
        return ""
    first, second = (batch.leaves for batch in one.batches)
    telling = any(a[1] and b[1] and a[0] != b[0] for a, b in zip(first, second, strict=False))
    return repr((first, second)) if telling else ""


def _choice(one: Facts) -> str:
    """Random augmentation hides that the same samples were chosen."""
    chosen = [batch.indices for batch in one.batches]
    return repr(chosen) if len(set(chosen)) == COMPARED and all(chosen) else ""
