"""What `scontrol show job` prints of a job, as four versions print it."""

from __future__ import annotations

import pytest

from slurmgen.errors import UnavailableError
from slurmgen.slurm.live.sbatch import State, _parse_state, exit_status

# The same first lines on 20.11.4, 22.05.8, 24.11.5 and 26.05.5.
RECORD = """\
JobId=347 JobName=h.sh
   UserId=root(0) GroupId=root(0) MCS_label=N/A
   Priority=4294901429 Nice=0 Account=(null) QOS=(null)
   JobState={state} Reason={reason} Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode={code}
   RunTime=00:00:00 TimeLimit=1-00:00:00 TimeMin=N/A
   Comment=JobState=COMPLETED Reason=None Dependency=(null)
"""


@pytest.mark.parametrize(
    ("state", "reason", "code", "status"),
    [
        ("RUNNING", "None", "0:0", None),
        ("COMPLETED", "None", "0:0", 0),
        ("FAILED", "NonZeroExitCode", "7:0", 7),
        ("FAILED", "RaisedSignal:9(Killed)", "0:9", 137),
        ("TIMEOUT", "TimeLimit", "0:0", 1),
        ("PENDING", "ReqNodeNotAvail,_UnavailableNodes:n1", "0:0", None),
    ],
)
def test_states(state: str, reason: str, code: str, status: int | None) -> None:
    found = _parse_state(RECORD.format(state=state, reason=reason, code=code))
    assert found == State(state, reason, code)
    if status is not None:
        assert exit_status([found]) == status


def test_another_form_is_said() -> None:
    with pytest.raises(UnavailableError):
        _parse_state("JobId=1 JobState=RUNNING")
