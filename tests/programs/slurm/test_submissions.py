"""What is read of sbatch and squeue, and what is kept of a submission."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from slurmgen.slurm.live import journal
from slurmgen.slurm.live.call import TimedOut, call
from slurmgen.slurm.live.sbatch import Submitted, read_id
from slurmgen.slurm.live.whereabouts import Job, _read

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("answer", "job"),
    [
        ("12\n", Submitted("12", None)),
        ("12;big\n", Submitted("12", "big")),
        ("Welcome\n12\n", None),
        ("12\n13\n", None),
        ("0\n", None),
        ("", None),
        ("١٢\n", None),
        ("Submitted batch job 12\n", None),
    ],
)
def test_an_id_and_nothing_else(answer: str, job: Submitted | None) -> None:
    assert read_id(answer) == job


def test_jobs_of_a_token() -> None:
    listing = (
        "Some site's banner\n"
        "7|RUNNING|/home/a/bb-cc-dd/sbatch\n"
        "8_[2-5%1]|PENDING|/home/a/bb-cc-ee/sbatch\n"
        "8_1|COMPLETED|/home/a/bb-cc-ee/sbatch\n"
        "9|PENDING|(null)\n"
        "10|PENDING|/home/a|b/dd/sbatch x|y\n"
    )
    assert _read(listing, "dd/") == [
        Job(Submitted("7", None), "RUNNING"),
        Job(Submitted("10", None), "PENDING"),
    ]
    assert _read(listing, "ee/") == [Job(Submitted("8", None), "PENDING")]
    het = "11+0|CANCELLED by 0|/a/dd/sbatch\n11+1|RUNNING|/a/dd/sbatch\n"
    assert _read(het, "dd/") == [Job(Submitted("11", None), "RUNNING")]
    several = f"CLUSTER: one\n\nCLUSTER: two\n{listing}"
    assert _read(several, "ee/") == [Job(Submitted("8", "two"), "PENDING")]


def test_a_flood_is_neither_kept_nor_waited_for() -> None:
    program = (
        "import sys\nsys.stdout.write('first\\n')\n"
        "for _ in range(5000): sys.stdout.write('x' * 10_000)\nsys.stdout.write('\\nlast\\n')\n"
    )
    done = call([sys.executable, "-c", program], os.environ, limit=1000)
    assert len(done.stdout) < 50_000 + 70_000
    assert done.stdout.startswith("first\n")
    assert done.stdout.endswith("\nlast\n")
    assert "bytes left out" in done.stdout


def test_a_program_that_leaves_something_running_has_ended() -> None:
    done = call(["bash", "-c", "echo 12; sleep 1000 & echo $! >&2"], os.environ)
    os.kill(int(done.stderr), 9)
    assert done.stdout == "12\n"


def test_what_a_program_had_said_when_its_time_was_over() -> None:
    with pytest.raises(TimedOut) as caught:
        call(["bash", "-c", "echo 12; sleep 1000 & wait"], os.environ, timeout=1)
    assert caught.value.stdout == "12\n"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "slurmgen" / "submits"


def test_a_record_is_private_and_known_to_its_own_job_alone(state: Path) -> None:
    job = journal.Job.of("job.yaml", "text", {"A": "b", "SSH_TTY": "1"})
    with journal.record(job, "text") as record:
        assert record.script.read_text() == "text"
        assert oct(record.folder.stat().st_mode & 0o777) == "0o700"
        assert oct(record.script.stat().st_mode & 0o777) == "0o600"
        # Of one that is alive nobody else hears.
        with journal.unfinished(job) as found:
            assert found == []
    with journal.unfinished(journal.Job.of("job.yaml", "other", {})) as found:
        assert found == []
    same = journal.Job.of("job.yaml", "text", {"A": "c"})
    with journal.unfinished(same) as found:
        assert [taken.token for taken in found] == [record.token]
        assert found[0].sbatch_has_ended()
        assert found[0].environment == job.environment != same.environment
        # Nor of one that somebody looks after already.
        with journal.unfinished(same) as others:
            assert others == []
        found[0].forget()
    assert list(state.iterdir()) == []


def test_another_connection_is_the_same_environment() -> None:
    here = journal.Job.of("job.yaml", "text", {"A": "b", "SSH_TTY": "/dev/pts/1", "_": "x"})
    assert here == journal.Job.of("job.yaml", "text", {"A": "b", "SSH_TTY": "/dev/pts/2"})


def test_old_records_are_swept(state: Path) -> None:
    with journal.record(journal.Job.of("job.yaml", "text", {}), "text") as record:
        pass
    os.utime(record.folder, (0, 0))
    with journal.unfinished(journal.Job.of("other.yaml", "text", {})) as found:
        assert found == []
    assert list(state.iterdir()) == []


def test_a_folder_that_others_may_write_to_is_not_used(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.mkdir(parents=True)
    state.chmod(0o777)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with journal.record(journal.Job.of("job.yaml", "text", {}), "text") as record:
        assert record.folder.parent == temporary / f"slurmgen-{os.getuid()}"
    assert list(state.iterdir()) == []
