"""Names in a job against the closed lists of a profile: nodes, licenses, features and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.cluster.problems import UNAVAILABLE, refuse

if TYPE_CHECKING:
    from slurmgen.cluster.profile import Profile
    from slurmgen.errors import Refusal
    from slurmgen.jobfile.job import JobSpec


def check(spec: JobSpec, profile: Profile, problems: list[Refusal]) -> None:
    """Add a Refusal for every name that is not in a list which the profile has closed."""
    inventory = profile.inventory
    if inventory.reservations is not None and spec.reservation is not None:
        if spec.reservation not in inventory.reservations:
            refuse(
                problems,
                "reservation",
                f'{profile.name} has no reservation "{spec.reservation}"',
                "Slurm would say: Requested reservation is invalid",
                "remove reservation",
            )
    _check_licenses(spec, profile, problems)
    if inventory.gres is not None and spec.gres is not None:
        for item in spec.gres.split(","):
            if item.partition(":")[0] not in inventory.gres:
                refuse(
                    problems,
                    "gres",
                    f'{profile.name} has no resource "{item.partition(":")[0]}"',
                    "Slurm would say: Invalid generic resource (gres) specification",
                    f"known: {', '.join(sorted(inventory.gres)) or 'none'} (case counts)",
                )
    if inventory.nodes is not None:
        _check_hosts(spec, inventory.nodes, profile, problems)
    _check_features(spec, profile, problems)


def _check_licenses(spec: JobSpec, profile: Profile, problems: list[Refusal]) -> None:
    known = profile.inventory.licenses
    if known is None:
        return
    for key, text in (
        ("licenses", spec.licenses),
        (("sbatch", "resources"), spec.sbatch.get("resources")),
    ):
        for item in text.replace("|", ",").split(",") if text else ():
            if item.partition(":")[0] not in known:
                refuse(
                    problems,
                    key,
                    f'{profile.name} has no license "{item}"',
                    "Slurm would say: Invalid license specification",
                    f"known: {', '.join(sorted(known)) or 'none'}",
                )


def _check_features(spec: JobSpec, profile: Profile, problems: list[Refusal]) -> None:
    lists = [kind.features for kind in profile.node_types]
    asked = (("constraint", spec.constraint), (("sbatch", "prefer"), spec.sbatch.get("prefer")))
    if not lists or None in lists or not any(text for _, text in asked):
        return
    from slurmgen.slurm.grammars.constraint import features

    known = {name for names in lists for name in names or ()}
    for key, text in asked:
        for word in features(text or ""):
            if word not in known:
                refuse(
                    problems,
                    key,
                    f'no node of {profile.name} has the feature "{word}"',
                    "Slurm would say: Invalid feature specification",
                    f"known: {', '.join(sorted(known)) or 'none'}",
                )


def _check_hosts(
    spec: JobSpec, nodes: tuple[str, ...], profile: Profile, problems: list[Refusal]
) -> None:
    from slurmgen.slurm.grammars.nodes import expand_hostlist

    excluded: set[str] = set()
    for key in ("nodelist", "exclude"):
        text = getattr(spec, key)
        hosts = expand_hostlist(text) if text else []
        if key == "exclude":
            excluded = set(hosts)
        for host in hosts:
            if host not in nodes:
                refuse(
                    problems,
                    key,
                    f'{profile.name} has no node "{host}"',
                    "Slurm would say: Invalid node name specified",
                    "check the name with sinfo -N",
                )
    left = len(set(nodes) - excluded)
    if excluded and spec.nodes > left:
        refuse(
            problems,
            "exclude",
            f"{spec.nodes} nodes, and {left} are left without the excluded ones",
            UNAVAILABLE,
            f"write nodes: {left}, or exclude fewer",
        )
