"""What a GPU's driver counts: how busy the GPU is, and how much of its memory is used.

NVIDIA's through NVML (the package nvidia-ml-py, whose module is pynvml), AMD's through torch, which
asks amdsmi. Neither has to be installed. No torch at import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_MIB = 2**20


class Reading(NamedTuple):
    """One look at a GPU.

    busy: the part of the driver's last sample period, a second at most, in which a kernel ran;
    None where the driver doesn't say, as for a MIG instance. used_mib, total_mib: of its memory,
    whoever uses it.
    """

    busy: float | None
    used_mib: int
    total_mib: int


class NoCounterError(Exception):
    """The GPU can't be read: why, and where there is one, the fix."""


def open_counter(device: str, uuid: str, *, amd: bool) -> Callable[[], Reading]:
    """What reads the GPU `device` ("cuda:N" as torch counts), whose UUID is `uuid`.

    Raises NoCounterError where the library is missing or doesn't know the GPU. What it returns
    raises whatever the library raises.
    """
    return _amd(device) if amd else _nvidia(uuid)


def _nvidia(uuid: str) -> Callable[[], Reading]:
    try:
        nvml: Any = import_module("pynvml")
    except ImportError:
        raise NoCounterError(
            "the module pynvml is not installed: pip install nvidia-ml-py"
        ) from None
    if not uuid:
        raise NoCounterError("this torch doesn't know the GPU's UUID")
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
    except nvml.NVMLError as error:
        raise NoCounterError(f"NVML: {error}") from error

    def read() -> Reading:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        try:
            # Percent. NVML has no utilisation of MIG instances.
            busy = nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        except nvml.NVMLError_NotSupported:
            busy = None
        return Reading(busy, memory.used // _MIB, memory.total // _MIB)

    return read


def _amd(device: str) -> Callable[[], Reading]:
    try:
        import_module("amdsmi")
    except Exception:
        # It raises other errors than ImportError where ROCm's own library isn't found.
        raise NoCounterError(
            "the module amdsmi can't be imported: pip install /opt/rocm/share/amd_smi"
        ) from None
    import torch

    index = torch.device(device).index

    def read() -> Reading:
        # torch translates HIP's number of the GPU into amdsmi's. "N/A" where it doesn't say.
        busy: Any = torch.cuda.utilization(index)
        free, total = torch.cuda.mem_get_info(index)
        return Reading(
            busy / 100 if isinstance(busy, int) else None, (total - free) // _MIB, total // _MIB
        )

    return read
