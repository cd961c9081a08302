"""Asking a running Slurm what it is, as any user may."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.errors import UnavailableError
from slurmgen.slurm.answers.records import settings
from slurmgen.slurm.answers.texts import ASSOCIATION, QOS, USER, Texts
from slurmgen.slurm.live.call import call
from slurmgen.slurm.live.sbatch import indent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Seconds. Slurm's programs try several times; a controller that is there answers in one.
_PATIENCE = 60


def ask(environment: Mapping[str, str], user: str) -> Texts:
    """What Slurm says of the cluster, and of the accounts of `user` where it keeps any.

    Raises UnavailableError where the controller can't be reached.
    """
    config = _scontrol(["show", "config"], environment)
    texts = Texts(
        config=config,
        # --all: those of other groups, and hidden ones, which a job may still name.
        partitions=_scontrol(["--all", "show", "partition"], environment),
        nodes=_scontrol(["--all", "show", "node"], environment),
    )
    found: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, what in (("licenses", "licenses"), ("reservations", "reservation")):
        _try(["scontrol", "show", what], environment, name, found, missing)
    set_ = settings(config)
    if "slurmdbd" not in set_.get("AccountingStorageType", ""):
        missing["accounts and QOS"] = "this Slurm keeps no accounts"
        return texts._replace(**found, missing=tuple(missing.items()))
    cluster = set_.get("ClusterName", "")
    for name, arguments, columns in (
        ("associations", ["association", f"user={user}", f"cluster={cluster}"], ASSOCIATION),
        ("qos", ["qos"], QOS),
        ("user", ["user", user], USER),
    ):
        shown = ["sacctmgr", "--noheader", "--parsable2", "show", *arguments]
        _try([*shown, f"format={','.join(columns)}"], environment, name, found, missing)
    return texts._replace(**found, missing=tuple(missing.items()))


def _scontrol(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    done = call(["scontrol", *arguments], environment, timeout=_PATIENCE)
    if done.returncode != 0:
        raise UnavailableError(
            f"scontrol {' '.join(arguments)} failed:\n{indent(done.stderr)}",
            fix="try again on a login node, or ask the site whether Slurm is down",
        )
    return done.stdout


def _try(
    command: Sequence[str],
    environment: Mapping[str, str],
    name: str,
    found: dict[str, str],
    missing: dict[str, str],
) -> None:
    """Something that need not be there."""
    try:
        done = call(command, environment, timeout=_PATIENCE)
    except UnavailableError as error:
        missing[name] = str(error)
        return
    if done.returncode == 0:
        found[name] = done.stdout
    else:
        said = re.sub(r"\s+", " ", done.stderr).strip() or f"exit {done.returncode}"
        missing[name] = f"{command[0]}: {said}"
