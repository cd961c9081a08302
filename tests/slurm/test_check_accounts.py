"""slurmgen check where Slurm keeps accounts: the user's own, and what their QOS allow."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import pytest

from slurmgen.sandbox import Sandbox, Shape
from tests.slurm.conftest import skip_without_accounting
from tests.slurm.test_check import JOB, slurmgen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slurm, pytest.mark.matrix]
SHAPE = Shape(nodes=1, extra_conf=("AccountingStorageEnforce=associations,limits,qos",))


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    skip_without_accounting()
    directory = tmp_path_factory.mktemp("sandbox")
    with Sandbox.up(name="acct", shape=SHAPE, directory=directory, accounting=True) as sandbox:
        user = getpass.getuser()
        for words in (
            "add qos debug MaxWall=00:30:00 MaxTRESPerUser=gres/gpu=2 Flags=DenyOnLimit",
            "add qos secret",
            "add qos few MaxSubmitJobsPerUser=3",
            "add qos trial MaxTRESPerJob=gres/gpu=1",
            f"modify user {user} where account=sandbox set qos=normal,debug,few",
            "add account small cluster=sandbox",
            f"add user {user} account=small MaxWall=00:20:00 MaxTRESPerJob=gres/gpu=2",
            "add account trials cluster=sandbox",
            f"add user {user} account=trials qos=trial defaultqos=trial",
        ):
            done = sandbox.run(["sacctmgr", "-i", *words.split()])
            assert done.returncode == 0, (words, done.stdout, done.stderr)
        yield sandbox


def checked(sandbox: Sandbox, folder: Path, more: str) -> tuple[int, str]:
    done = slurmgen(sandbox.environment(), folder, "check", "job.yaml", job=JOB + more)
    return done.returncode, done.stdout


def test_detect_knows_them(sandbox: Sandbox, tmp_path: Path) -> None:
    done = slurmgen(sandbox.environment(), tmp_path, "cluster", "detect")
    assert done.returncode == 0, done.stderr
    assert "  - name: debug\n    replaces: false\n    max_time: 00:30:00\n    max_gpus: 2\n" in (
        done.stdout
    )
    assert "example: sandbox" in done.stdout
    assert "Not found out" not in done.stdout


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", ""),
        ("account: sandbox\n", ""),
        ("account: others\n", ":6:10: error: account others is none of yours on sandbox "),
        ("qos: secret\n", ":6:6: error: QOS secret is none of those of account sandbox "),
        ("qos: debug\n", ":2:16: error: 4 GPUs in the job, and QOS debug allows 2 "),
        ("qos: few\narray: 0-3\n", ":7:8: error: 4 tasks, and a user may have 3 jobs in QOS few "),
        # Limits of the user's own in an account.
        ("account: small\n", ":1:7: error: time 00:30:00 is over the 00:20:00 of account small "),
        ("account: small\n", ":2:16: error: 4 GPUs in the job, and account small allows 2 "),
        # A QOS that the job doesn't name.
        ("account: trials\n", ":2:16: error: 4 GPUs in the job, and QOS trial allows 1 "),
    ],
)
def test_the_users_own(sandbox: Sandbox, tmp_path: Path, more: str, said: str) -> None:
    status, out = checked(sandbox, tmp_path, more)
    assert status == (1 if said else 0), out
    assert said in out
