"""NVML and amdsmi as their Python packages answer, without a GPU."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from slurmgen.ddp.measure.gpu_counters import NoCounterError, Reading, open_counter

MIB = 2**20
UUID = "GPU-d8d7e984-7a52-6ad0-676c-222f4be482b9"
MIG = "MIG-8c4c5a27-e508-5556-b2ea-7e549465741e"


class Nvml(ModuleType):
    """The part of nvidia-ml-py 12 and 13 that is used: names, units and errors are theirs."""

    class NVMLError(Exception):
        """Raised for each status but success."""

    class NVMLError_NotSupported(NVMLError):
        """Status 3."""

    class NVMLError_LibraryNotFound(NVMLError):
        """Status 12."""

    class NVMLError_NotFound(NVMLError):
        """Status 6."""

    driver = True

    def nvmlInit(self) -> None:
        if not self.driver:
            raise self.NVMLError_LibraryNotFound("NVML Shared Library Not Found")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in {UUID, MIG}:
            raise self.NVMLError_NotFound("Not Found")
        return uuid

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:
        if handle == MIG:
            raise self.NVMLError_NotSupported("Not Supported")
        return SimpleNamespace(gpu=93, memory=40)

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        return SimpleNamespace(total=81920 * MIB, free=80000 * MIB, used=1920 * MIB + 5)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    module = Nvml("pynvml")
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def test_a_gpu(nvml: Nvml) -> None:
    read = open_counter("cuda:0", UUID, amd=False)
    assert read() == Reading(busy=0.93, used_mib=1920, total_mib=81920)


def test_a_mig_instance_has_memory_only(nvml: Nvml) -> None:
    read = open_counter("cuda:0", MIG, amd=False)
    assert read() == Reading(busy=None, used_mib=1920, total_mib=81920)


def test_what_cannot_be_opened_says_why(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoCounterError, match="NVML: Not Found"):
        open_counter("cuda:0", "GPU-another", amd=False)
    with pytest.raises(NoCounterError, match="UUID"):
        open_counter("cuda:0", "", amd=False)
    nvml.driver = False
    with pytest.raises(NoCounterError, match="NVML: NVML Shared Library Not Found"):
        open_counter("cuda:0", UUID, amd=False)


@pytest.mark.parametrize(
    ("module", "amd", "fix"),
    [("pynvml", False, "pip install nvidia-ml-py"), ("amdsmi", True, "pip install /opt/rocm")],
)
def test_a_missing_library_names_the_fix(
    monkeypatch: pytest.MonkeyPatch, module: str, amd: bool, fix: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NoCounterError, match=f"{module} .*{fix}"):
        open_counter("cuda:0", UUID, amd=amd)


@pytest.mark.torch
@pytest.mark.parametrize(("said", "busy"), [(41, 0.41), ("N/A", None)])
def test_an_amd_gpu(monkeypatch: pytest.MonkeyPatch, said: object, busy: float | None) -> None:
    torch = pytest.importorskip("torch")
    asked: list[int] = []

    def utilization(index: int) -> object:
        asked.append(index)
        return said

    monkeypatch.setitem(sys.modules, "amdsmi", ModuleType("amdsmi"))
    monkeypatch.setattr(torch.cuda, "utilization", utilization)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (1000 * MIB, 65536 * MIB))
    assert open_counter("cuda:2", "", amd=True)() == Reading(busy, 64536, 65536)
    assert asked == [2]
