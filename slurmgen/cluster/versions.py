"""What the Slurm version of a cluster takes of what a job asks for.

The spec allows what any version does; here the profile's own counts, where it is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.errors import Refusal
from slurmgen.slurm.options import catalog
from slurmgen.slurm.options.values import check_option

if TYPE_CHECKING:
    from slurmgen.cluster.profile import Profile
    from slurmgen.jobfile.job import JobSpec

# key, text in its value, the first release line that reads it
_NEWER_VALUES = (
    ("exclusive", "topo", "24.05"),
    ("licenses", "|", "25.05"),
    ("begin", "elevenses", "24.05"),
    ("deadline", "elevenses", "24.05"),
)
# Since this line R: is refused where nothing can preempt a job (seen on 24.11, 26.05).
_RESERVATION_SIGNAL = "24.11"


def check(spec: JobSpec, profile: Profile, problems: list[Refusal]) -> None:
    """Add a Refusal for every option and value that the profile's Slurm refuses."""
    version = profile.slurm or ""
    line = ".".join(version.split(".")[:2])
    for name, value in spec.sbatch.items():
        # Another name is a site plugin's option, which the spec has let pass.
        if catalog.find(name) is not None:
            try:
                check_option(name, value, version)
            except Refusal as refusal:
                problems.append(refusal.about(("sbatch", name)))
    for key, word, since in _NEWER_VALUES:
        value = getattr(spec, key)
        if value is not None and word in value and line < since:
            problems.append(_problem(key, f'"{value}" needs Slurm {since}', profile, "remove it"))
    flags, colon, signal = (spec.signal or "").rpartition(":")
    if "R" in flags and profile.preemption is False and line >= _RESERVATION_SIGNAL:
        rest = f"{flags.replace('R', '')}{colon}{signal}".lstrip(":")
        what = f'"{spec.signal}" needs preemption'
        problems.append(_problem("signal", what, profile, f"write {rest}"))


def _problem(key: str, what: str, profile: Profile, fix: str) -> Refusal:
    why = f"{profile.name} has Slurm {profile.slurm} without it, where sbatch ends with an error"
    return Refusal(what, why=why, fix=fix, key=key)
