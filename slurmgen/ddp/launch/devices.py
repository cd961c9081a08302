"""Which device a rank takes, and the proof that no two ranks took the same one."""

from __future__ import annotations

import json
import os
import socket
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from slurmgen.ddp import log
from slurmgen.ddp.failure import LaunchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from slurmgen.ddp.launch.identity import Identity

# Present wherever the NVIDIA or the AMD driver runs; Slurm's pretend GPUs have neither.
_DRIVER_FILES = ("/dev/nvidiactl", "/dev/kfd")


@dataclass(frozen=True)
class Seat:
    """Where one rank sits, as it tells the others.

    node is Slurm's name, machine the host name: several slurmd may share a machine.
    device: "cuda:N" or "cpu". gpu, uuid: "" on a CPU; uuid as ``nvidia-smi -L`` writes it.
    visible: how many GPUs this rank sees. given: what it was given where torch sees no GPU.
    """

    rank: int
    node: str
    machine: str
    local_rank: int
    device: str
    gpu: str = ""
    uuid: str = ""
    visible: int = 0
    given: str = ""
    ignored: tuple[str, ...] = ()

    def dump(self) -> str:
        """As JSON, for the store."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str | bytes) -> Seat:
        """The inverse of `dump`."""
        data = json.loads(text)
        return cls(**{**data, "ignored": tuple(data["ignored"])})


def choose_index(visible: int, local_rank: int, local_world_size: int) -> int | None:
    """The index of a rank's GPU among those it sees, None for no GPU at all.

    A rank that sees all GPUs of its node takes the one of its local rank. One that sees a single
    GPU was bound to it by Slurm (``--gpus-per-task=1``, ``--gpu-bind=single:1``), where it has
    index 0 whatever the local rank. Anything else raises LaunchError.
    """
    if visible == 0:
        return None
    if visible >= local_world_size:
        return local_rank
    if visible == 1:
        return 0
    raise LaunchError(
        f"{local_world_size} ranks on {socket.gethostname()}, but each sees {visible} GPUs",
        why="some ranks would have to share a GPU, or have none",
        fix="ask for as many GPUs per node as tasks per node: --gres=gpu:N with"
        " --ntasks-per-node=N, and no --gpus-per-task or --gpu-bind beside them",
    )


def take_device(identity: Identity, env: Mapping[str, str]) -> torch.device:
    """Choose this rank's device and make it CUDA's current one.

    To be called before anything else touches CUDA, so that ``.cuda()`` and ``device="cuda"`` mean
    the rank's own GPU. Never writes CUDA_VISIBLE_DEVICES, which is Slurm's. Raises LaunchError
    as `choose_index` does, and where the node has GPUs that this torch can't use.
    """
    import torch

    visible = torch.cuda.device_count()
    index = choose_index(visible, identity.local_rank, identity.local_world_size)
    if index is not None:
        torch.cuda.set_device(index)
        return torch.device("cuda", index)
    given = given_gpus(env)
    if given and any(map(os.path.exists, _DRIVER_FILES)):
        raise LaunchError(
            f"the task was given GPU {given}, but torch {torch.__version__} sees none",
            why="the job would train on CPUs and leave its GPUs idle",
            fix="install a build of torch for this driver; to train on CPUs on purpose, export an"
            " empty CUDA_VISIBLE_DEVICES",
        )
    if identity.local_world_size > 1 and "OMP_NUM_THREADS" not in env:
        # By default each rank starts a thread per core, and they all fight for the same cores.
        torch.set_num_threads(1)
    return torch.device("cpu")


def given_gpus(env: Mapping[str, str]) -> str:
    """The GPUs Slurm says this task has, "" for none."""
    for name in ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "SLURM_STEP_GPUS"):
        if name in env:
            value = env[name].strip()
            return "" if value in {"-1", "NoDevFiles"} else value
    return ""


def describe_seat(identity: Identity, device: torch.device, env: Mapping[str, str]) -> Seat:
    """This rank's seat, with the GPU's name and UUID where it has one."""
    import torch

    gpu = uuid = ""
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        gpu = properties.name
        uuid = _uuid(str(getattr(properties, "uuid", "")), device.index, env)
    return Seat(
        rank=identity.rank,
        node=identity.node,
        machine=socket.gethostname(),
        local_rank=identity.local_rank,
        device=str(device),
        gpu=gpu,
        uuid=uuid,
        visible=torch.cuda.device_count(),
        given=given_gpus(env) if device.type == "cpu" else "",
        ignored=identity.ignored,
    )


def _uuid(text: str, index: int, env: Mapping[str, str]) -> str:
    # CUDA may report the parent's UUID for each of its MIG instances; Slurm lists the instances.
    listed = env.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if index < len(listed) and listed[index].strip().startswith("MIG-"):
        return listed[index].strip()
    return text if not text or text.startswith(("GPU-", "MIG-")) else f"GPU-{text}"


def check_seats(seats: Sequence[Seat]) -> None:
    """Raise LaunchError where two ranks share a GPU, or some have a GPU and others none."""
    on_gpu: dict[tuple[str, str], list[int]] = defaultdict(list)
    for seat in seats:
        if seat.uuid:
            on_gpu[seat.machine, seat.uuid].append(seat.rank)
    for (machine, uuid), ranks in on_gpu.items():
        if len(ranks) > 1:
            raise LaunchError(
                f"ranks {', '.join(map(str, ranks))} share one GPU, {uuid} on {machine}",
                why="they would slow each other down and run out of its memory, and NCCL refuses"
                " it, while other GPUs idle",
                fix="one GPU per rank: --gres=gpu:N with --ntasks-per-node=N on the job, and no"
                " --gres on the srun line",
            )
    without = [seat for seat in seats if seat.device == "cpu"]
    if without and len(without) < len(seats):
        first = without[0]
        raise LaunchError(
            f"rank {first.rank} on {first.node} has no GPU, but other ranks have one",
            why="NCCL and gloo can't form one group: every rank would wait",
            fix=f"look at the driver of {first.node} (nvidia-smi), or exclude it: --exclude="
            f"{first.node}",
        )


def say_table(seats: Sequence[Seat], backend: str) -> None:
    """Say who sits where, a line per rank, and below it what looks unintended."""
    nodes = len({seat.node for seat in seats})
    rows = [("rank", "host", "local", "device", "gpu", "uuid")]
    rows += [
        (str(s.rank), s.node, str(s.local_rank), s.device, s.gpu or "-", s.uuid or "-")
        for s in seats
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"{len(seats)} rank(s) on {nodes} node(s), backend {backend}"]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
    log.note("\n".join(lines))
    for text in _warnings(seats):
        log.warn(text)


def _warnings(seats: Sequence[Seat]) -> list[str]:
    found: list[str] = []
    odd = [seat for seat in seats if seat.ignored]
    if odd:
        first = odd[0]
        found.append(
            f"{', '.join(first.ignored)} on rank {first.rank} contradicts Slurm's step variables,"
            f" which are used ({len(odd)} of {len(seats)} ranks); don't export it in the batch"
            " script"
        )
    blind = [seat for seat in seats if seat.given]
    if blind:
        found.append(
            f"rank {blind[0].rank} on {blind[0].node} was given GPU {blind[0].given}, but no GPU"
            f" driver is there ({len(blind)} of {len(seats)} ranks): training on CPUs"
        )
    by_node: dict[str, list[Seat]] = defaultdict(list)
    for seat in seats:
        by_node[seat.node].append(seat)
    for node, here in by_node.items():
        idle = here[0].visible - len(here)
        if idle > 0:
            found.append(
                f"{here[0].visible} GPUs on {node} but {len(here)} rank(s): {idle} GPU(s) stay idle"
            )
    return found
