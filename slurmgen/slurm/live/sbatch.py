"""What sbatch and scontrol are told and answer; how a job is handed over is in `handover`."""

from __future__ import annotations

import re
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import JobRefused, UnavailableError
from slurmgen.slurm.live.call import NoAnswer, call

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def would_start(script: str, *, environment: Mapping[str, str]) -> str:
    """What sbatch --test-only says about when `script` would start; nothing is submitted.

    Raises JobRefused, with Slurm's own sentence, where it says that it wouldn't, and another
    UnavailableError where sbatch is missing or gives no answer.
    """
    # A file, not a pipe: sbatch reads it in one go, and a large one never blocks.
    with tempfile.TemporaryFile() as file:
        file.write(script.encode())
        file.seek(0)
        done = call(["sbatch", "--test-only"], environment, file, limit=1 << 16)
    if done.returncode != 0:
        raise JobRefused(
            f"sbatch refused the job (exit {done.returncode}):\n{indent(done.stderr)}",
            fix="change what it names, then try again",
            said=done.stderr.strip(),
        )
    return done.stderr.strip()


def read_id(answer: str) -> Submitted | None:
    """The job of which `sbatch --parsable` prints `ID` or `ID;CLUSTER`; None for anything else."""
    found = re.fullmatch(r"([1-9][0-9]*)(?:;([A-Za-z0-9_.-]+))?", answer.strip())
    return None if found is None else Submitted(found[1], found[2])


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
    be there. Raises NoAnswer where the controller doesn't answer, UnavailableError.
    """
    where = ["-M", job.cluster] if job.cluster else []
    done = call(["scontrol", *where, "show", "job", job.job_id], environment)
    if done.returncode != 0:
        if "Invalid job id" in done.stderr:
            return None
        raise NoAnswer(
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
