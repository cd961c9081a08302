"""slurmgen cluster: the profiles, and what the Slurm of this machine says."""

from __future__ import annotations

import getpass
import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.cli import report
from slurmgen.cluster import detect, generic
from slurmgen.cluster.load import find_profile, profile_files, read_profile
from slurmgen.errors import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE, InvalidInput, UsageError
from slurmgen.jobfile.project import project_root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.cluster.profile import NodeType, Profile
    from slurmgen.slurm.answers.facts import Facts

_FORMATS = ("text", "json")


def list_all(*, format_: str = "text") -> int:
    """A row for each profile; the one on which one stands is marked.

    What is wrong with others is said after them: then EXIT_USAGE.
    """
    _check_format(format_)
    profiles, wrong = _all_profiles()
    host = socket.gethostname()
    here = {one.name for one in profiles if detect.sign(one.detect, os.environ, host)}
    _print_list(profiles, here, format_)
    for problem in wrong:
        report.error(problem)
    return EXIT_USAGE if wrong else EXIT_OK


def _all_profiles() -> tuple[list[Profile], list[InvalidInput]]:
    """Those that can be read, by name, and what is wrong with the others."""
    profiles, wrong = [], []
    for name, path in sorted(profile_files(_root()).items()):
        if name == generic.NAME:
            continue
        try:
            profiles.append(read_profile(path))
        except InvalidInput as problem:
            wrong.append(problem)
    return profiles, wrong


def _print_list(profiles: Sequence[Profile], here: set[str], format_: str) -> None:
    if format_ == "json":
        rows = [_summary(profile, profile.name in here) for profile in profiles]
        report.out(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
        return
    header = ("NAME", "SITE", "GPUS OF A NODE", "STATUS", "VERIFIED")
    lines = [header, *(_row(profile, profile.name in here) for profile in profiles)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        report.show("  ".join(cells).rstrip() + "\n")


def show(name: str, *, format_: str = "text") -> int:
    """Everything a profile says, in words and with its documents."""
    _check_format(format_)
    profile = read_profile(find_profile(name, _root()))
    if format_ == "json":
        from slurmgen.cluster.profile import Profile

        assert isinstance(profile, Profile)
        report.out(profile.model_dump_json(indent=2, exclude_defaults=True) + "\n")
        return EXIT_OK
    from slurmgen.cluster.description import describe

    report.show("\n".join(describe(profile)) + "\n")
    return EXIT_OK


def detect_live(*, format_: str = "text") -> int:
    """The profile that the Slurm of this machine makes, as a file to read, mend and keep."""
    _check_format(format_)
    from slurmgen.cluster.live.profile import profile_data

    data = profile_data(live_facts())
    if format_ == "json":
        report.out(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        return EXIT_OK
    from slurmgen.cluster.live.writing import profile_text

    report.out(profile_text(data))
    return EXIT_OK


def diff(name: str, *, format_: str = "text") -> int:
    """Where a profile and the Slurm of this machine have drifted apart: a line for each."""
    _check_format(format_)
    from slurmgen.cluster.drift import differences

    profile = read_profile(find_profile(name, _root()))
    lines = differences(profile, live_profile(live_facts()))
    if format_ == "json":
        report.out(json.dumps(lines, indent=2, ensure_ascii=False) + "\n")
    else:
        report.show("".join(f"{line}\n" for line in lines))
    return EXIT_FINDINGS if lines else EXIT_OK


def live_facts() -> Facts:
    """What the Slurm of this machine says; raises UnavailableError."""
    from slurmgen.slurm.answers import facts
    from slurmgen.slurm.live import cluster, sbatch

    environment, _ = sbatch.clean_environment(os.environ)
    return facts.read(cluster.ask(environment, getpass.getuser()))


def live_profile(found: Facts, *, with_names: bool = False) -> Profile:
    """The profile of those facts."""
    from slurmgen.cluster.live.profile import profile_data
    from slurmgen.cluster.profile import Profile

    return Profile(**profile_data(found, with_names=with_names))


def _check_format(given: str) -> None:
    if given not in _FORMATS:
        raise UsageError(f'there is no format "{given}"', fix=f"choose {' or '.join(_FORMATS)}")


def _root() -> Path:
    return project_root(Path("job.yaml"))


def _row(profile: Profile, is_here: bool) -> tuple[str, ...]:
    status: str = profile.status
    if profile.ends:
        status = f"{status} {'since' if status == 'closed' else 'on'} {profile.ends}"
    return (
        profile.name + ("  <- you are here" if is_here else ""),
        profile.site,
        _gpus(profile),
        status,
        "yes" if profile.verified else "no",
    )


def _gpus(profile: Profile) -> str:
    kinds = [_kind(kind) for kind in profile.node_types if kind.gpu or kind.gpus_per_node]
    return ", ".join(dict.fromkeys(kinds)) or "?"


def _kind(kind: NodeType) -> str:
    return f"{kind.gpus_per_node or '?'} {kind.gpu or kind.name}"


def _summary(profile: Profile, is_here: bool) -> dict[str, object]:
    return {
        "name": profile.name,
        "title": profile.title,
        "site": profile.site,
        "gpus": [
            {"type": kind.gpu, "per_node": kind.gpus_per_node or None, "vendor": kind.vendor}
            for kind in profile.node_types
            if kind.gpu or kind.gpus_per_node
        ],
        "status": profile.status,
        "ends": profile.ends or None,
        "verified": profile.verified,
        "here": is_here,
    }
