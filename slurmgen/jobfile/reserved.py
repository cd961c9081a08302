"""Which variables a job file may not set, and why.

A variable under `env:` is exported in the batch shell, so everything reads it: Bash, Slurm's
programs, and the script itself. A value that only the program should see goes to it with `env`.
"""

from __future__ import annotations

from slurmgen.errors import Refusal
from slurmgen.jobfile import bash_variables as bash
from slurmgen.jobfile.script_names import NAMES

# Names of the script that a job may give on purpose: the script respects what it finds.
_MAY_BE_GIVEN = frozenset(("OMP_NUM_THREADS", "PATH", "SLURMGEN_FAILURE", "UV_NO_SYNC"))
# Set by torchrun in each rank (torch/distributed/elastic/agent/server/local_elastic_agent.py).
TORCHRUN = frozenset(
    "GROUP_RANK GROUP_WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT RANK "
    "ROLE_NAME ROLE_RANK ROLE_WORLD_SIZE TORCHELASTIC_ERROR_FILE TORCHELASTIC_MAX_RESTARTS "
    "TORCHELASTIC_RESTART_COUNT TORCHELASTIC_RUN_ID TORCHELASTIC_USE_AGENT_STORE "
    "WORLD_SIZE".split()
)
_DEVICES = frozenset(
    "CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES GPU_DEVICE_ORDINAL "
    "ZE_AFFINITY_MASK".split()
)
# sbatch(1), srun(1), squeue(1), scancel(1), scontrol(1), INPUT ENVIRONMENT VARIABLES.
_SLURM_PREFIXES = ("SLURM_", "SLURMD_", "SBATCH_", "SRUN_", "SQUEUE_", "SCANCEL_", "SCONTROL_")


def refused_variable(name: str) -> Refusal | None:
    """Why a variable must not be set in the batch shell, or None if it may."""
    if name in _DEVICES:
        return Refusal(
            f"{name} is Slurm's to set",
            why="another list hides the job's GPUs, or takes those of another job",
            fix="remove it: the device follows from the local rank",
        )
    if name in bash.READ_AS_CODE or name.startswith(bash.FUNCTION_PREFIX):
        return Refusal(
            f"{name} belongs to Bash",
            why="Bash runs what it says",
            fix="remove it; code goes into setup.commands",
        )
    why = _bash_reason(name)
    if why:
        return Refusal(
            f"{name} belongs to Bash",
            why=why,
            fix=f"remove it, or set it for the program alone: command: env {name}=… PROGRAM",
        )
    if name in TORCHRUN or (name in NAMES and name.isupper() and name not in _MAY_BE_GIVEN):
        return Refusal(
            f"{name} is set by the script, in each task",
            why="exported in the batch shell, it would be the same in every task",
            fix="remove it",
        )
    if name in NAMES and name not in _MAY_BE_GIVEN:
        return Refusal(
            f"{name} is a name of the script's own", why="the script sets it", fix="rename it"
        )
    if name.startswith(_SLURM_PREFIXES):
        return Refusal(
            f"{name} belongs to Slurm",
            why="Slurm's programs in the script would read it as an option",
            fix="remove it, or use the job file's key",
        )
    return None


def _bash_reason(name: str) -> str:
    """What Bash does with `name`; "" if it only passes it on."""
    if name in bash.EVALUATED:
        return "Bash takes its value for arithmetic, in which a[$(id)] runs id"
    if name in bash.READ_ONLY:
        return "it can't be set, and the script would end there"
    if name in bash.NOT_PASSED_ON:
        return "Bash gives it a value of its own, and the program would find that"
    if name in bash.CHANGES_BASH:
        return "Bash goes other ways by it, in the script and in what the script reads"
    return ""
