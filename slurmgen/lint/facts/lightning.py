"""What Lightning does in a Slurm job: SLURMEnvironment, which it chooses by itself.

lightning/fabric/plugins/environments/slurm.py and .../trainer/connectors/signal_connector.py of
1.6 to 2.5: where SLURM_NTASKS is set, and the job is not called `interactive` or `bash`, ranks come
from Slurm, and SIGUSR1 (or requeue_signal) saves and calls `scontrol requeue`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.reading.programs.frameworks import lightning_trainers
from slurmgen.reading.programs.processes import signal_names

if TYPE_CHECKING:
    from slurmgen.lint.facts.python import Run
    from slurmgen.reading.programs import Call

_ELSEWHERE = frozenset(
    {"LightningEnvironment", "TorchElasticEnvironment", "MPIEnvironment", "KubeflowEnvironment"}
)
_INTERACTIVE = frozenset({"interactive", "bash"})


def trainers(run: Run) -> list[Call]:
    """The Trainers and Fabrics that take their ranks from Slurm."""
    if not _asks_slurm(run):
        return []
    return [call for call in lightning_trainers(run.program) if run.reaches(call)]


def _asks_slurm(run: Run) -> bool:
    if run.program.words & _ELSEWHERE:
        return False
    name = run.launch.environment.get("SLURM_JOB_NAME")
    request = run.job.request_of(run.launch)
    names = {request.value("job-name"), name.value.literal if name is not None else None}
    if run.launch.step is None and not request.gives("ntasks", "ntasks-per-node"):
        # Then sbatch sets no SLURM_NTASKS.
        return False
    if names & _INTERACTIVE or "SLURM_NTASKS" in _removed(run):
        return False
    return not any(run.program.writes("SLURM_JOB_NAME", "SLURM_NTASKS"))


def _removed(run: Run) -> set[str]:
    """Variables that the script or the program takes out of the environment."""
    found = {
        word.text
        for command in run.job.commands("unset")
        if command.start < run.launch.command.start
        for word in command.words[1:]
    }
    for call in run.program.called("os.environ.pop", "os.unsetenv"):
        text = call.text(0, "key")
        if text is not None:
            found.add(text)
    return found


def requeue_signals(run: Run) -> frozenset[str]:
    """The signals on which Lightning requeues the job; empty where it does not, or isn't known."""
    made = [call for call in trainers(run) if call.name == "lightning.Trainer"]
    if not made or any(call.is_open for call in made):
        return frozenset()
    environments = list(run.program.called("lightning.SLURMEnvironment"))
    if not environments:
        return frozenset({"SIGUSR1"})
    found: set[str] = set()
    for call in environments:
        requeues = call.argument(0, "auto_requeue")
        if requeues is not None and requeues.literal is not True:
            continue
        given = call.argument(1, "requeue_signal")
        found.update(signal_names(given) if given is not None else ("SIGUSR1",))
    return frozenset(found)
