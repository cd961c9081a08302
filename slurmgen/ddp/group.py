"""From an identity to a process group, and the functions that depend on nothing else."""

from __future__ import annotations

import os
import socket
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook

from slurmgen.ddp import checks, log
from slurmgen.ddp.failure import (
    EXIT_FAILED,
    EXIT_LAUNCH,
    LINGER_S,
    LaunchError,
    bound_exit,
)
from slurmgen.ddp.launch import devices, init_methods, preflight, rendezvous, signals
from slurmgen.ddp.launch.identity import Identity, resolve_identity
from slurmgen.ddp.measure import usage
from slurmgen.ddp.watch import ports, supervised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    from slurmgen.ddp.checks.watch import Watch


@dataclass
class _Run:
    identity: Identity | None = None
    device: torch.device | None = None
    meeting: rendezvous.Rendezvous | None = None
    prepared: bool = False
    watched: bool = False
    ended: bool = False
    groups: int = 0
    watch: Watch | None = None
    wrapped: Any = field(default_factory=weakref.WeakKeyDictionary)
    closers: list[Callable[[], None]] = field(default_factory=list)


_run = _Run()


def rank() -> int:
    """This process's place among all ranks, 0 without a launcher."""
    return _identity().rank


def local_rank() -> int:
    """This process's place among the ranks of its node."""
    return _identity().local_rank


def world_size() -> int:
    """The number of ranks, 1 without a launcher."""
    return _identity().world_size


def is_main() -> bool:
    """Whether this is global rank 0, the one that writes files and prints."""
    return _identity().rank == 0


def device() -> torch.device:
    """This rank's own device: "cuda:N", or "cpu" where there is no GPU.

    The first call makes it CUDA's current device. Exits with 78 where ranks and GPUs don't fit.
    """
    if _run.device is None:
        try:
            _run.device = devices.take_device(_identity(), os.environ)
        except LaunchError as error:
            raise _exit(error) from None
    return _run.device


def prepare(identity: Identity) -> None:
    """Take the device, meet the other ranks, export the variables and print the table.

    For an identity that has passed `preflight.check`. Afterwards a program may call
    ``torch.distributed.init_process_group()`` by itself, as often as it likes. Raises
    LaunchError. Does nothing the second time.
    """
    if _run.prepared:
        return
    _run.identity = identity
    if _run.device is None:
        _run.device = devices.take_device(identity, os.environ)
    seat = devices.describe_seat(identity, _run.device, os.environ)
    if identity.world_size > 1:
        seats = _meet(identity, seat)
    else:
        seats = [seat]
        # Of this process's own, for a program that insists on env://.
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(_free_port()))
    os.environ.update(identity.exports())
    _run.prepared = True
    hang_s = preflight.hang_after(os.environ)
    if hang_s and not _run.watched:
        _watch(hang_s)
    supervised.progress()
    if identity.rank == 0:
        devices.say_table(seats, _backend(_run.device))
    usage.begin(seat, identity.world_size, amd=torch.version.hip is not None)
    if preflight.wants_checks(os.environ):
        _run.watch = checks.install(identity, _run.device, _run.meeting and _run.meeting.store)
        on_shutdown(_run.watch.close)


def init(timeout: timedelta | None = None, *, hang_timeout: timedelta | None = None) -> None:
    """Bring up the default process group: NCCL where the ranks have GPUs, gloo otherwise.

    Works under any launcher, and on a single process without one. Safe to call again; a group
    that the program made itself is kept. timeout: of each collective, torch's default for None
    (NCCL 10, gloo 30 minutes). hang_timeout: how long a rank may take no step (of an optimizer, or
    of ``run.batches``) before the entrypoint shows where every rank is and ends the run; longer
    than the longest evaluation and checkpoint. None: SLURMGEN_HANG_S, by default without a bound.
    Exits with 78, after saying what is wrong, where the ranks were
    launched wrongly. Raises RuntimeError after `shutdown`.
    """
    if hang_timeout is not None:
        _watch(hang_timeout.total_seconds())
    if dist.is_initialized():
        device()
        return
    if _run.ended:
        raise RuntimeError("the run has ended with ddp.shutdown(): the ranks can't meet again")
    try:
        if not _run.prepared:
            preflight.check(_identity(), os.environ)
        prepare(_identity())
    except LaunchError as error:
        raise _exit(error) from None
    identity, own = _identity(), device()
    _run.groups += 1
    store: dist.Store = dist.HashStore()
    if _run.meeting is not None:
        store = dist.PrefixStore(f"group/{_run.groups}", _run.meeting.store)
    dist.init_process_group(
        _backend(own),
        store=store,
        rank=identity.rank,
        world_size=identity.world_size,
        timeout=timeout,
        device_id=own if own.type == "cuda" else None,
    )
    supervised.progress()


def shutdown() -> None:
    """End the run: wait until every rank is here, then destroy the process group.

    The entrypoint does it when the program ends; a program that also runs under plain torchrun
    calls it last. Safe to call again. The wait has no bound of its own, since rank 0 may still
    evaluate for hours. Exits with 1 where another rank failed meanwhile.
    """
    for close in _run.closers:
        close()
    _run.closers.clear()
    # What comes late mustn't turn a run that ended well into a failed one; but until the others
    # are here, a job that is cancelled has to end.
    signals.end(ignore_term=False)
    # From here on this rank only waits for the others.
    supervised.watch(0)
    meeting, _run.meeting = _run.meeting, None
    _run.ended = True
    store = None if meeting is None else meeting.store
    usage.hand_in(store)
    failed: str | None = None
    if meeting is not None:
        try:
            failed = meeting.finish()
        except dist.DistError as error:
            failed = str(error).splitlines()[0]
    watch, _run.watch = _run.watch, None
    if watch is not None:
        watch.conclude()
    if failed is not None:
        bound_exit()
        usage.tell(store, "failed")
        log.note(f"rank {rank()} had ended well, but the run failed: {failed}")
        if supervised.desk() is None:
            time.sleep(LINGER_S)
        raise SystemExit(EXIT_FAILED)
    usage.tell(store, "stopped" if signals.stopped() else "done")
    if dist.is_initialized():
        dist.destroy_process_group()


def mark_failed(text: str) -> str:
    """Tell the other ranks that this one failed; returns the note of the first that did.

    Never waits for them: a rank that fails must not keep the launcher from ending the others.
    """
    meeting, _run.meeting = _run.meeting, None
    first, store = text, None
    if meeting is not None:
        with suppress(dist.DistError):
            first, store = meeting.fail(text), meeting.store
    usage.hand_in(store)
    usage.tell(store, "failed")
    return first


def wrap(
    model: torch.nn.Module,
    *,
    shard: Iterable[type[torch.nn.Module]] | None = None,
    **options: Any,
) -> torch.nn.Module:
    """Move `model` to this rank's device and, with several ranks, wrap it in DDP.

    The model itself stays usable: take its ``state_dict()`` from the object you passed in.

    shard: instead, share its parameters out over all ranks (FSDP2, ``fully_shard``), for a model
    that with its gradients and optimizer doesn't fit one GPU. The classes of its blocks: one block
    at a time is whole on a GPU, now and in each pass. The model is changed in place and returned;
    make the optimizer afterwards, from its new parameters. All start from rank 0's. Needs torch
    2.6. On one rank nothing is shared out.

    options: those of ``torch.nn.parallel.DistributedDataParallel``, or of
    ``torch.distributed.fsdp.fully_shard``.

    Raises RuntimeError where there are several ranks but no process group yet, ValueError for a
    class that the model has no module of.
    """
    own = device()
    if shard is not None:
        classes = tuple(shard)
        for one in classes:
            if not any(isinstance(module, one) for module in model.modules()):
                raise ValueError(f"shard: the model has no {one.__name__} in it")
        if several_ranks():
            from slurmgen.ddp.train import sharding

            return sharding.shard(model, classes, own, **options)
    model = model.to(own)
    if not several_ranks():
        return model
    if own.type == "cuda":
        options = {"device_ids": [own.index], **options}
    parallel = torch.nn.parallel.DistributedDataParallel(model, **options)
    _run.wrapped[model] = weakref.ref(parallel)
    return parallel


def wrapper_of(model: torch.nn.Module) -> Any:
    """What `wrap` made of `model`, None where it didn't wrap it."""
    reference = _run.wrapped.get(model)
    return None if reference is None else reference()


def leave_out(check: str) -> None:
    """What the check of this name would find has been said."""
    if _run.watch is not None:
        _run.watch.leave_out(check)


def on_shutdown(close: Callable[[], None]) -> None:
    """Call `close` when the run ends."""
    _run.closers.append(close)


def print0(*values: object, flush: bool = True, **options: Any) -> None:
    """``print`` on rank 0, nothing on the others. Flushes, since a log is read while it grows."""
    if is_main():
        print(*values, flush=flush, **options)


@overload
def all_mean(value: float) -> float: ...
@overload
def all_mean(value: torch.Tensor) -> torch.Tensor: ...
def all_mean(value: float | torch.Tensor) -> float | torch.Tensor:
    """The mean of `value` over all ranks, the same on each: a collective, so all must call it.

    A tensor comes back as a new, detached one on the device it came from; integers as the default
    float type. Every rank counts alike: for uneven shares average sums and counts, and divide.
    """
    if not isinstance(value, torch.Tensor):
        mean = all_mean(torch.tensor(value, dtype=torch.float64))
        return float(mean.item())
    home = value.device
    total = value.detach().clone()
    if not total.is_floating_point() and not total.is_complex():
        total = total.to(torch.get_default_dtype())
    if several_ranks():
        total = total.to(device())
        dist.all_reduce(total)
        total = (total / dist.get_world_size()).to(home)
    return total


def several_ranks() -> bool:
    """Whether a group of more than one rank is up.

    Raises RuntimeError where there should be one but there is none yet: each rank would go on as
    if it were alone.
    """
    if dist.is_initialized():
        return bool(dist.get_world_size() > 1)
    if world_size() > 1:
        raise RuntimeError("there are several ranks but no process group: call ddp.init() first")
    return False


def _identity() -> Identity:
    if _run.identity is None:
        try:
            _run.identity = resolve_identity(os.environ)
            log.speak_as(_run.identity.rank)
        except LaunchError as error:
            raise _exit(error) from None
    return _run.identity


def _watch(hang_s: float) -> None:
    """Let the supervisor look for hangs; any optimizer's step is progress."""
    if supervised.desk() is None:
        log.warn("no look-out for hangs: it needs python -m slurmgen.ddp")
        return
    supervised.watch(hang_s)
    if not _run.watched:
        register_optimizer_step_post_hook(lambda *_: supervised.progress())
    _run.watched = True


def _meet(identity: Identity, seat: devices.Seat) -> list[devices.Seat]:
    host, port = preflight.master(os.environ)
    timeout_s = preflight.rendezvous_timeout(os.environ)
    agent = preflight.has_agent_store(identity, os.environ)
    desk = supervised.desk()
    if not agent:
        host = next(iter(ports.loopback(identity)), host)
    if desk is not None and not agent:
        # Of the kernel's choice: no other program can hold it.
        port = 0 if identity.rank == 0 else desk.store_port(timeout_s)
    meeting = rendezvous.Rendezvous(identity, host, port, timeout_s=timeout_s, agent=agent)
    _run.meeting = meeting
    if desk is not None:
        if agent:
            rendezvous.introduce(meeting, desk, identity.rank, timeout_s)
        elif identity.rank == 0:
            desk.announce(meeting.port)
    seats = meeting.meet(seat)
    # For what looks at the variables itself: torch's env:// would connect, and open no second one.
    os.environ.update(
        TORCHELASTIC_USE_AGENT_STORE="True", MASTER_ADDR=host, MASTER_PORT=str(meeting.port)
    )
    init_methods.redirect(host, meeting.port, identity.world_size, meeting.prefix)
    return seats


def _backend(own: torch.device) -> str:
    return "nccl" if own.type == "cuda" else "gloo"


def _exit(error: LaunchError) -> SystemExit:
    log.refuse(error)
    return SystemExit(EXIT_LAUNCH)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
