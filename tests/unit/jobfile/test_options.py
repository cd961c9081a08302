"""Options under `sbatch:`: which exist, with which values, in which version."""

from __future__ import annotations

import pytest

from slurmgen.errors import Refusal
from slurmgen.slurm.options import catalog
from slurmgen.slurm.options.values import check_option

# Seen to be refused by sbatch 22.05, or no part of a job file.
REFUSED = [
    ("nice", "2147483646"),
    ("gpu-bind", "v,closest"),
    ("gpu-freq", "High"),
    ("cpu-freq", "high-low"),
    ("cpu-freq", "low:performance"),
    ("cpu-freq", "3000-2000"),
    ("mem-bind", "map_mem"),
    ("acctg-freq", "task:30"),
    ("distribution", "plane=4"),
    ("extra-node-info", "1:0"),
    ("gres-flags", "allow-task-sharing"),
    ("tmp", "٥G"),
    ("mincpus", "+1"),
    ("wckey", ""),
    ("comment", "é" * 600),
    ("wrap", "true"),
    ("test-only", None),
    ("checkpoint", "1"),
    ("ntasks-per-no", "2"),
]


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_refused(name: str, value: str | None) -> None:
    with pytest.raises(Refusal) as caught:
        check_option(name, value, "22.05")
    assert caught.value.why
    assert caught.value.fix


@pytest.mark.parametrize(
    ("name", "value", "version", "fine"),
    [
        ("container", "/x", "20.11", False),
        ("container", "/x", "21.08.8", True),
        ("container", "/x", None, True),
        ("power", "level", "23.11", True),
        ("power", "level", "24.05", False),
        ("segment", "2", "23.11", False),
        ("segment", "2", "24.05", True),
        ("mem-update", "1", "25.11", False),
        ("gpu-bind", "none", "20.11", False),
        ("gpu-bind", "none", None, True),
        ("gres-flags", "multiple-tasks-per-sharing", "22.05", False),
        ("gres-flags", "multiple-tasks-per-sharing", "24.11", True),
        ("wckey", "*x", "26.05", False),
    ],
)
def test_versions(name: str, value: str, version: str | None, fine: bool) -> None:
    try:
        check_option(name, value, version)
    except Refusal:
        assert not fine
    else:
        assert fine


@pytest.mark.parametrize(
    ("name", "meant"),
    [("hints", "hint"), ("t", "time"), ("Nodelist", "nodelist"), ("reserv", None)],
)
def test_suggestions(name: str, meant: str | None) -> None:
    assert catalog.suggest(name) == meant


def test_the_catalogue_is_sound() -> None:
    shorts = [option.short for option in catalog.options().values() if option.short]
    assert len(shorts) == len(set(shorts))
    for option in catalog.options().values():
        assert option.argument in ("no", "optional", "required")
        assert option.since is None or option.until is None or option.since <= option.until
        assert catalog.find(option.name.replace("-", "_")) is option
    assert catalog.is_srun_only("cpu-bind")
    assert not catalog.is_srun_only("nodes")
