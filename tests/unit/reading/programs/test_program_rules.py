"""Programs with one fault each, and programs with none: what the rules about Python say."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.lint.job import load

if TYPE_CHECKING:
    from slurmgen.lint.finding import Finding

HERE = Path(__file__).parent
RULES = [
    import_module(f"slurmgen.lint.rules.{name}")
    for name in (
        "all_ranks_save",
        "cpu_count_not_affinity",
        "cvd_not_int",
        "dataparallel_fallback",
        "ddp_not_wrapped",
        "device_global_rank",
        "gpu_bound_local_rank",
        "lightning_torchrun_in_slurm",
        "local_rank_arg",
        "no_distributed_sampler",
        "no_set_device",
        "no_set_epoch",
        "rank_env_not_set",
        "sampler_rank_literal",
        "scontrol_in_container",
        "signal_mismatch",
        "spawn_rank_no_node_offset",
        "tasks_gpus_mismatch",
        "workers_exceed_cpus",
    )
]


def files_of(text: str) -> dict[str, str]:
    """The files of a case: each begins with ``=== NAME``."""
    parts = re.split(r"^=== (\S+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def findings(folder: Path, files: dict[str, str]) -> dict[str, list[Finding]]:
    """What each rule finds, less what another one explains."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    script = folder / "job.sbatch"
    job = load(str(script), script.read_text(), folder=folder)
    found = {rule.NAME: list(rule.check(job)) for rule in RULES}
    hidden = {name for rule in RULES if found[rule.NAME] for name in getattr(rule, "HIDES", ())}
    return {name: items for name, items in found.items() if items and name not in hidden}


def cases(folder: str) -> list[tuple[str, str, dict[str, str]]]:
    """Every case in a folder: its file's name, its number there (``##### 1``), and its files."""
    found = []
    for path in sorted((HERE / folder).glob("*.txt")):
        parts = re.split(r"^##### (\S+)\n", path.read_text(), flags=re.MULTILINE)
        if len(parts) == 1:
            found.append((path.stem, "1", files_of(parts[0])))
        for number, text in zip(parts[1::2], parts[2::2], strict=True):
            found.append((path.stem, number, files_of(text)))
    return found


FAULTS = cases("faults")
CLEAN = cases("clean")


@pytest.mark.parametrize(
    ("rule", "files"),
    [(rule, files) for rule, _, files in FAULTS],
    ids=[f"{rule}-{number}" for rule, number, _ in FAULTS],
)
def test_a_fault_is_named(rule: str, files: dict[str, str], tmp_path: Path) -> None:
    found = findings(tmp_path, files)
    assert list(found) == [rule]
    places = [place for item in found[rule] for place in (item.place, *item.also)]
    for place in places:
        text = files["job.sbatch"] if not place.path else Path(place.path).read_text()
        line = text.split("\n")[place.line - 1]
        assert 1 <= place.column <= place.column + place.length - 1 <= len(line)


@pytest.mark.parametrize(
    "files",
    [files for _, _, files in CLEAN],
    ids=[f"{name}-{number}" for name, number, _ in CLEAN],
)
def test_a_clean_program_is_left_alone(files: dict[str, str], tmp_path: Path) -> None:
    assert findings(tmp_path, files) == {}


def test_every_rule_has_faults() -> None:
    assert {rule for rule, _, _ in FAULTS} == {rule.NAME for rule in RULES}
