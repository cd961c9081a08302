"""What Slurm's commands printed, as it was printed."""

from __future__ import annotations

from typing import NamedTuple


class Texts(NamedTuple):
    """config, partitions, nodes, reservations, licenses: of `scontrol show`. associations, qos,
    user: of `sacctmgr --parsable2 --noheader`, in the order of `ASSOCIATION`, `QOS` and `USER`.

    None: not told; `missing` says why, by the name of the field.
    """

    config: str
    partitions: str
    nodes: str
    licenses: str | None = None
    reservations: str | None = None
    associations: str | None = None
    qos: str | None = None
    user: str | None = None
    missing: tuple[tuple[str, str], ...] = ()


# Columns that are asked for; the same names on 20.11 to 26.05.
ASSOCIATION = ("Account", "Partition", "QOS", "DefaultQOS", "MaxTRES", "MaxWall")
QOS = (
    "Name",
    "MaxWall",
    "MaxTRES",
    "MaxTRESPU",
    "MaxTRESMins",
    "GrpTRES",
    "MinTRES",
    "MaxJobsPU",
    "MaxSubmitPU",
    "Preempt",
    "Flags",
)  # fmt: skip
USER = ("User", "DefaultAccount")
