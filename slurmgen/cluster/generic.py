"""The built-in profile `generic`, which assumes nothing, without Pydantic.

Most jobs are rendered on it, and reading a file and building the models for what is all
defaults would be the larger part of the work; `jobfile/without_pydantic.py` says more.
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
        site="",
        status="in service",
        status_reason="",
        status_source=(),
        ends="",
        verified=True,
        verified_note="",
        read_on="",
        sources={},
        detect=None,
        slurm=None,
        gpus=SimpleNamespace(
            form="gres", typed="optional", counts=(), step=None, why="", source=()
        ),
        node_types=(),
        partitions=(),
        other_partitions=False,
        qos=(),
        limits=(),
        max_array_size=None,
        preemption=None,
        when_preempted=None,
        constrain_devices=None,
        inventory=SimpleNamespace(nodes=None, licenses=None, reservations=None, gres=None),
        account=None,
        required={},
        forbidden={},
        memory="explicit",
        defaults={},
        sbatch={},
        srun=(),
        env={},
        module_purge=False,
        module_use=(),
        modules=(),
        add=(),
        binding=None,
        launch=None,
        container=None,
        rendezvous=SimpleNamespace(address="name", suffix="", port=None, why="", source=()),
        suggests=None,
        notes=(),
    ),
)
