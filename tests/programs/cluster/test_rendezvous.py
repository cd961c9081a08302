"""The master address that the script finds, where the profile wants an IP."""

from __future__ import annotations

import subprocess

import pytest

from slurmgen.cluster.profile import Profile, Rendezvous
from slurmgen.jobfile.job import JobSpec
from slurmgen.script.plan import resolve
from slurmgen.script.render import render


def address(resolved: str, suffix: str = "") -> str:
    """MASTER_ADDR where `getent ahostsv4 NAME` prints `resolved`, by the script's own lines."""
    profile = Profile(name="site", rendezvous=Rendezvous(address="ip", suffix=suffix))
    text = render(resolve(JobSpec(command="true", nodes=2), profile))
    start = text.index("MASTER_ADDR=$(getent")
    lines = text[start : text.index("export MASTER_ADDR")]
    script = f"""\
set -euo pipefail
getent() {{ [ "$*" = "ahostsv4 n1{suffix}" ] && printf '%s' "$resolved"; }}
first_node=n1
{lines}
printf %s "$MASTER_ADDR"
"""
    done = subprocess.run(
        ["bash", "-c", script],
        env={"resolved": resolved, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("resolved", "expected"),
    [
        ("10.0.0.1        STREAM n1\n10.0.0.1        DGRAM  \n", "10.0.0.1"),
        (
            "127.0.1.1       STREAM n1\n127.0.1.1       DGRAM  \n10.0.0.1        STREAM \n",
            "10.0.0.1",
        ),
        ("12.7.0.1        STREAM n1\n10.0.0.1        STREAM \n", "12.7.0.1"),
        # Nothing but loopback: the other nodes know its name better than it does.
        ("127.0.1.1       STREAM n1\n127.0.0.1       STREAM \n", "n1"),
    ],
)
def test_an_ip_is_one_that_the_other_nodes_reach(resolved: str, expected: str) -> None:
    assert address(resolved) == expected


def test_the_suffix_belongs_to_the_name() -> None:
    assert address("10.1.0.1 STREAM n1i\n", suffix="i") == "10.1.0.1"
    assert address("127.0.1.1 STREAM n1i\n", suffix="i") == "n1i"
