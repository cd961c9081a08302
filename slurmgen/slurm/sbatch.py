"""Handing a script to sbatch, and waiting for its job."""

from __future__ import annotations

import re
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import UnavailableError
from slurmgen.slurm.call import call

if TYPE_CHECKING:
    from collections.abc import Mapping


class Refused(UnavailableError):
    """sbatch did not take the job; `said` is its own words."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(
            f"sbatch refused the job (exit {status}):\n{indent(said)}",
            fix="nothing was submitted; change what it names, then submit again",
        )
        self.said = said.strip()


class Submitted(NamedTuple):
    """A job id as sbatch printed it, and the cluster's name where it named one."""

    job_id: str
    cluster: str | None


# Where Slurm is and how to reach it; every other SLURM_* variable describes a job.
_KEPT = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")
_OF_A_JOB = ("SBATCH_", "SLURM_", "SRUN_", "SALLOC_")


def clean_environment(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """`environment` without what would change the job, and the names left out.

    An SBATCH_* variable beats the #SBATCH line of the same option (sbatch(1), INPUT
    ENVIRONMENT VARIABLES), so one that is left in a shell would silently change what was
    rendered. The SLURM_* variables of a job that one submits from (salloc, an
    interactive session) are passed on, and srun in the new job reads them as options:
    under an outer `--gpus-per-node=1` every rank saw one GPU (20.11, 24.11, 26.05).
    """
    of_a_job = {name for name in environment if name.startswith(_OF_A_JOB)}
    dropped = sorted(of_a_job - set(_KEPT))
    return {k: v for k, v in environment.items() if k not in dropped}, dropped


def submit(
    script: str, *, environment: Mapping[str, str], test_only: bool = False
) -> Submitted | str:
    """Hand `script` to sbatch on its standard input.

    Returns the job, or with `test_only` what sbatch said about when it would start.
    Raises Refused, with Slurm's own sentence, where sbatch does not take it, and another
    UnavailableError where sbatch is missing or gives no answer.
    """
    command = ["sbatch", "--test-only"] if test_only else ["sbatch", "--parsable"]
    # A file, not a pipe: sbatch reads it in one go, and a large one never blocks.
    with tempfile.TemporaryFile() as file:
        file.write(script.encode())
        file.seek(0)
        done = call(command, environment, file)
    if done.returncode != 0:
        raise Refused(done.returncode, done.stderr)
    if test_only:
        return done.stderr.strip()
    job_id, _, cluster = done.stdout.strip().partition(";")
    if not job_id.isdigit():
        raise UnavailableError(
            f"sbatch answered {done.stdout.strip()!r}, which is no job id",
            fix="look with squeue whether the job was taken",
        )
    return Submitted(job_id, cluster or None)


def version(environment: Mapping[str, str]) -> str:
    """The release line of the sbatch on PATH, such as `22.05`; raises UnavailableError."""
    answer = call(["sbatch", "--version"], environment).stdout
    found = re.search(r"\d+\.\d+", answer)
    if found is None:
        raise UnavailableError(
            f"sbatch --version answered {answer.strip()!r}", fix="check which sbatch is on PATH"
        )
    return found.group()


def indent(text: str) -> str:
    """Slurm's own words, set off from ours."""
    return "\n".join(f"  {line}" for line in text.strip().splitlines())


class State(NamedTuple):
    """Where a job is: Slurm's state, the reason it gives, and `code:signal`."""

    state: str
    reason: str
    exit_code: str


# Slurm's states in which a job, or a task of an array, has ended (squeue(1), JOB STATE CODES).
ENDED = frozenset(
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED "
    "TIMEOUT REVOKED".split()
)


def job_states(job: Submitted, environment: Mapping[str, str]) -> list[State] | None:
    """The states of a job, one for each task of an array; None once Slurm has forgotten it.

    From `scontrol show job`, which every version and every site has; accounting need not
    be there. Raises UnavailableError where the controller does not answer.
    """
    where = ["-M", job.cluster] if job.cluster else []
    done = call(["scontrol", *where, "show", "job", job.job_id], environment)
    if done.returncode != 0:
        if "Invalid job id" in done.stderr:
            return None
        raise UnavailableError(
            f"scontrol failed:\n{indent(done.stderr)}", fix="try again: the job itself goes on"
        )
    return [_parse_state(record) for record in done.stdout.split("\n\n") if record.strip()]


# Not the one-line form: there a job's name or comment, which may hold any text but a line
# break, could not be told from Slurm's own words. The lines are the same on 20.11 to 26.05.
_STATE = re.compile(r"^   JobState=(\w+) Reason=(\S*) ", re.MULTILINE)
_EXIT_CODE = re.compile(r"^   Requeue=\d+ .*\bExitCode=(\d+:\d+)$", re.MULTILINE)


def _parse_state(record: str) -> State:
    state, exit_code = _STATE.search(record), _EXIT_CODE.search(record)
    if state is None or exit_code is None:
        raise UnavailableError(
            "scontrol show job answered in a form that is not known",
            fix="look with squeue; the job itself goes on",
        )
    return State(state[1], state[2], exit_code[1])


def exit_status(states: list[State]) -> int:
    """The exit status of a job as `sbatch --wait` gives it: the highest of its tasks.

    A job killed by signal n gives 128 + n; one that ended otherwise badly gives 1.
    """
    worst = 0
    for state in states:
        code, _, signal = state.exit_code.partition(":")
        status = 128 + int(signal) if signal.isdigit() and int(signal) else int(code or 0)
        if status == 0 and state.state != "COMPLETED":
            status = 1
        worst = max(worst, status)
    return worst
