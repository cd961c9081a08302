"""Whether Slurm has the job of one submission, whatever sbatch said about it.

The job is known by the path of the script that sbatch was given: that has a random name in it, the
token, and Slurm keeps the path with the job. It was chosen because nothing else does all of this:

* squeue and scontrol show it (`%o`, `Command=`) on 20.11, 22.05, 24.11 and 26.05, for pending,
  held, running and ended jobs, for each task of an array and each component of a het job; sacct
  has it (`SubmitLine`, from 21.08) for jobs that slurmctld has forgotten.
* It changes no byte of the script, no option and no variable of the job. A comment is the
  user's, and at some sites means something; --extra is newer than 22.05; a variable in the
  job's environment can't be read back from outside; job name, user and time tell two
  submissions of one job file apart badly, and under a clock that jumps not at all.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.errors import UnavailableError
from slurmgen.slurm.live.call import call
from slurmgen.slurm.live.sbatch import ENDED, Submitted, indent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Deadline = Callable[[float], float]

# Seconds for one question; a controller that is there answers in one.
_PATIENCE = 30
# sacct shows what started after a moment that it counts from its own clock.
_DAYS = 3
# Seconds by which a controller's clock may be behind this machine's.
_CLOCKS_APART = 60
# The path of a script that slurmgen hands to sbatch (`journal`).
_OURS = re.compile(r"-[0-9a-f]{16}/sbatch\b")


class Job(NamedTuple):
    """A job that Slurm has, and the state that it gives."""

    submitted: Submitted
    state: str


class Memory(NamedTuple):
    """What slurm.conf says, in seconds.

    message_timeout: how long a message may take (MessageTimeout).
    of_ended: how long a job that has ended is still shown (MinJobAge); None: for ever.
    """

    message_timeout: float
    of_ended: float | None


def find(
    token: str, clusters: str, environment: Mapping[str, str], deadline: Deadline
) -> list[Job]:
    """The jobs that Slurm has of that submission, one for a whole array; none is no proof
    where the controller may have forgotten it (`memory`).

    clusters: the value of --clusters, "" where the job has none.
    deadline: of each question, as `call` takes it.
    Raises UnavailableError where the controller doesn't answer.
    """
    listing = _list(_squeue(clusters), environment, deadline)
    return _read(listing, token) or _find_ended(token, clusters, environment, deadline)


def named_alike(
    name: str, since: float, clusters: str, environment: Mapping[str, str], deadline: Deadline
) -> list[str]:
    """The ids of this user's jobs of that name that slurmgen hasn't submitted.

    since: by this machine's clock; jobs submitted earlier, by the controller's, are left out.
    Raises UnavailableError where the controller doesn't answer.
    """
    # The form of %V is the user's own choice otherwise.
    plain = {k: v for k, v in environment.items() if k != "SLURM_TIME_FORMAT"}
    listing = _list(_squeue(clusters, "%i|%V|%o|%j"), plain, deadline)
    found: dict[str, None] = {}
    for line in listing.splitlines():
        alike = re.fullmatch(rf"(\d+)[^|]*\|([^|]*)\|(.*)\|{re.escape(name)}", line)
        if alike is None or _OURS.search(alike[3]):
            continue
        try:
            submitted = time.mktime(time.strptime(alike[2], "%Y-%m-%dT%H:%M:%S"))
        except ValueError:
            continue
        if submitted >= since - _CLOCKS_APART:
            found.setdefault(alike[1])
    return list(found)


def command(token: str, clusters: str) -> str:
    """What a person types to look for it."""
    return f"{shlex.join(_squeue(clusters))} | grep {token}"


def memory(environment: Mapping[str, str], deadline: Deadline) -> Memory:
    """Raises UnavailableError where the controller doesn't answer."""
    done = call(["scontrol", "show", "config"], environment, timeout=_PATIENCE, deadline=deadline)
    found = dict(re.findall(r"^(MessageTimeout|MinJobAge)\s*= (\d+) sec", done.stdout, re.M))
    if len(found) != 2:
        raise UnavailableError(
            f"scontrol show config failed:\n{indent(done.stderr[:2000])}", fix="try again later"
        )
    kept = float(found["MinJobAge"])
    return Memory(float(found["MessageTimeout"]), kept or None)


def _squeue(clusters: str, form: str = "%i|%T|%o") -> list[str]:
    """All of one's jobs: of hidden partitions, and those that another cluster took over (--all)."""
    where = [f"--clusters={clusters}"] if clusters else []
    what = ["--all", "--states=all", f"--user={os.getuid()}"]
    return ["squeue", *where, "--noheader", *what, f"--format={form}"]


def _list(squeue: list[str], environment: Mapping[str, str], deadline: Deadline) -> str:
    done = call(squeue, environment, timeout=_PATIENCE, deadline=deadline)
    if done.returncode != 0:
        raise UnavailableError(
            f"squeue failed:\n{indent(done.stderr[:2000])}", fix="try again later"
        )
    return done.stdout


def _find_ended(
    token: str, clusters: str, environment: Mapping[str, str], deadline: Deadline
) -> list[Job]:
    """From accounting, where there is any and it keeps what was typed."""
    where = [f"--clusters={clusters}"] if clusters else []
    what = ["--allocations", f"--user={os.getuid()}", f"--starttime=now-{_DAYS}days"]
    form = ["--noheader", "--parsable2", "--format=JobID,State,SubmitLine"]
    try:
        done = call(
            ["sacct", *where, *what, *form], environment, timeout=_PATIENCE, deadline=deadline
        )
    except UnavailableError:
        return []
    return _read(done.stdout, token) if done.returncode == 0 else []


def _read(listing: str, token: str) -> list[Job]:
    """With --clusters squeue puts `CLUSTER: NAME` over the jobs of each."""
    found: dict[Submitted, str] = {}
    cluster = None
    for line in listing.splitlines():
        if line.startswith("CLUSTER: "):
            cluster = line.removeprefix("CLUSTER: ").strip()
        shown, _, rest = line.partition("|")
        state, _, what = rest.partition("|")
        job_id = re.match(r"\d+", shown)
        if job_id is not None and token in what:
            # An array's tasks and a het job's components: one job, as sbatch prints it, which
            # has ended when all of them have.
            job = Submitted(job_id[0], cluster)
            if found.get(job, "BOOT_FAIL") in ENDED:
                found[job] = state.partition(" ")[0]
    return [Job(submitted, state) for submitted, state in found.items()]
