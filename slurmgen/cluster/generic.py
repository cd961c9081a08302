"""The built-in profile `generic`, which assumes nothing, without Pydantic.

Most jobs are rendered on it, and reading a file and building the models for what is all
defaults would be the larger part of the work; `spec/quick.py` says more.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from slurmgen.cluster.profile import Profile

NAME = "generic"
PROFILE = cast(
    "Profile",
    SimpleNamespace(
        name=NAME,
        title="any Slurm cluster",
        status="in service",
        status_reason="",
        verified=True,
        sources=(),
        read_on="",
        slurm=None,
        gpus=SimpleNamespace(form="gres", typed="optional", counts=()),
        node_types=(),
        partitions=(),
        max_array_size=None,
        preemption=None,
        constrain_devices=None,
        inventory=SimpleNamespace(nodes=None, licenses=None, reservations=None, gres=None),
        required={},
        forbidden={},
        memory="explicit",
        defaults={},
        sbatch={},
        srun=(),
        env={},
        module_use=(),
        modules=(),
        container=None,
        rendezvous=SimpleNamespace(address="name", suffix=""),
    ),
)
