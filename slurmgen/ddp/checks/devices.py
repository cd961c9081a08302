"""The checks for models that are on another device than their rank's."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from slurmgen.ddp.checks.facts import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.ddp.checks.facts import Facts


def check_shared(everyone: Sequence[Facts]) -> Iterator[str]:
    """Two ranks of one machine that train on one GPU.

    Mistake: ``.to("cuda:0")`` on every rank.
    Why: they share one GPU's memory and speed, and the GPU given to the other one idles.
    Fix: ``model.to(ddp.device())``, or "cuda" without a number, which is the rank's own.
    """
    on: dict[tuple[str, str], list[Facts]] = defaultdict(list)
    for one in everyone:
        for gpu in one.gpus:
            on[one.machine, gpu].append(one)
    for (_, gpu), users in on.items():
        if len(users) > 1:
            ranks = listed([one.rank for one in users])
            yield (
                f"{ranks} train on one GPU, {gpu} on {users[0].node}, while others idle: put the"
                ' model on ddp.device(), or on "cuda" without a number, which is the rank\'s own'
            )
            return


def check_idle(everyone: Sequence[Facts]) -> Iterator[str]:
    """A rank that has a GPU and trains on the CPU.

    Mistake: the model was never moved.
    Why: the job waits in the queue and pays for a GPU that does nothing.
    Fix: ``model.to(ddp.device())``, and the batches too.

    Silent where anything at all is on the GPU: parameters may be on the CPU on purpose then.
    """
    idle = [one for one in everyone if one.idle]
    if idle:
        verb = "trains" if len(idle) == 1 else "train"
        yield (
            f"{listed([one.rank for one in idle])} {verb} on the CPU, and nothing is on"
            f" {idle[0].own} of {idle[0].node}: move model and batches to ddp.device()"
        )
