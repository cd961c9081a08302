"""Markers that skip what this machine can't run, groups for parallel runs, golden files."""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable

SLURM_PROGRAMS = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "munged")
SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")

# How long an example takes says more of the machine than of the code. CI tries the same
# examples each time, so that a change is judged by what it changed.
settings.register_profile(
    "slurmgen",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
# `make quick`: few examples, and the same ones each time. `examples.py` takes its number from here.
settings.register_profile(
    "quick", settings.get_profile("slurmgen"), max_examples=10, derandomize=True, database=None
)
settings.load_profile("slurmgen")

# Filled on the process that prints: with pytest-xdist, the one that runs no test itself.
_left_out: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the expected files of tests/golden again instead of comparing",
    )


def pytest_configure() -> None:
    # shellcheck and torchrun come with the environment; Debian keeps the daemons where a
    # user's PATH does not look.
    path = [str(Path(sys.executable).parent)]
    path += os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join([*path, *(p for p in SBIN if p not in path)])
    # A shell that starts `make test` in the background leaves INT ignored, in all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Ranks that pretend to have CPUs share a few: threads that wait spinning keep the others out.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    absent = {
        marker: reason
        for marker, reason in (
            ("slurm", _slurm_is_absent()),
            ("torch", _torch_is_absent()),
            ("gpu", _gpu_is_absent()),
        )
        if reason
    }
    for item in items:
        for marker, reason in absent.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
                break
        if item.get_closest_marker("xdist_group"):
            continue
        if item.get_closest_marker("torch") or item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.xdist_group("torch"))
        elif item.get_closest_marker("slurm"):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def _slurm_is_absent() -> str:
    missing = [name for name in SLURM_PROGRAMS if shutil.which(name) is None]
    return f"needs a real Slurm; missing: {', '.join(missing)}" if missing else ""


def _torch_is_absent() -> str:
    return "" if importlib.util.find_spec("torch") else "needs torch, which is not installed"


def _gpu_is_absent() -> str:
    if not list(Path("/dev").glob("nvidia[0-9]*")):
        return "needs an NVIDIA GPU"
    if _torch_is_absent():
        return _torch_is_absent()
    if importlib.metadata.version("torch").endswith("+cpu"):
        return "needs a CUDA build of torch (make setup TORCH_INDEX=...)"
    return ""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        if reason.startswith("needs "):
            _left_out[reason] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _left_out:
        terminalreporter.section("left out on this machine")
        for reason, count in sorted(_left_out.items()):
            terminalreporter.write_line(f"{count} test{'s' * (count > 1)}: {reason}")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expected files are to be written instead of compared (`make golden`)."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def golden(update_golden: bool) -> Callable[[Path, str], None]:
    """`golden(path, text)`: text is what the file at path says, byte for byte."""

    def compare(path: Path, text: str) -> None:
        if update_golden:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        if not path.exists():
            pytest.fail(f"{path} is missing; write it with `make golden`", pytrace=False)
        expected = path.read_bytes().decode()
        if text != expected:
            diff = difflib.unified_diff(
                expected.splitlines(keepends=True),
                text.splitlines(keepends=True),
                str(path),
                "now",
            )
            pytest.fail(
                "".join(diff) + "\nif the change is meant: `make golden`, then review the diff",
                pytrace=False,
            )

    return compare
