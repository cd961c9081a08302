"""What a program is meant to be: a rank of a training, a run of its own, a preparation."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from slurmgen.lint.facts.python import sets_up_elsewhere
from slurmgen.reading.programs.distributed import groups
from slurmgen.reading.programs.facts import whole
from slurmgen.reading.programs.frameworks import CARING, frameworks, lightning_trainers
from slurmgen.reading.programs.processes import processes
from slurmgen.reading.programs.roles import LOCAL_RANK, RANK, WORLD_SIZE
from slurmgen.reading.shell.words import TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Call, Program
    from slurmgen.reading.shell.launch import Launch

_OF_A_TASK = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_TASK_PID")
_RANK_OPTION = re.compile(
    r"rank|local|world|node|proc|device|gpu|machine|addr|port|master", re.IGNORECASE
)
# An option, or a setting of Hydra's, as one word or as two with a blank between.
_DISTRIBUTED_OPTION = re.compile(
    r"""-*(?:\w+\.)*(?:
        (?:use[_-]|multiprocessing[_-])?(?:distributed|ddp|fsdp)(?:[= ](?:1|true|yes))?
        | (?:dist[_-](?:url|backend|init|on[_-]itp)|init[_-]method|slurm[_-]?ddp)(?:[= ].*)?
        | (?:world[_-]?size|nnodes|num[_-]nodes|nr[_-]nodes)[= ](?!0$|1$).*
        | strategy[= ]["']?(?:ddp|fsdp|deepspeed).*
        | (?:dist[_-])?backend[= ]["']?(?:nccl|gloo|mpi)["']?
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_OWN_LAUNCH = re.compile(r"\b(?:srun|mpirun|mpiexec|torchrun|ssh|pdsh|deepspeed|accelerate)\b")


def arguments(launch: Launch) -> Iterator[tuple[str, str]]:
    """Each argument of a program, and the one behind it."""
    texts = [word.text for word in launch.words[1:]]
    yield from zip_longest(texts, texts[1:], fillvalue="")


def rank_sign(job: Job, launch: Launch) -> str | None:
    """What shows that a program is one rank of several, as a clause; None where nothing does."""
    program = job.program(launch)
    if program is not None:
        sign = _sign_in(program)
        if sign is not None or is_plain(program):
            return sign
    for name in ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"):
        if name in launch.environment:
            return f"the script sets {name} for it"
    for text, behind in arguments(launch):
        if behind.lower() in ("0", "false", "no", "none"):
            continue
        if any(_DISTRIBUTED_OPTION.fullmatch(given) for given in (text, f"{text} {behind}")):
            return f"it is given {text}"
    return None


def is_plain(program: Program) -> bool:
    """Whether nothing that isn't read here can make a rank of a program."""
    return not sets_up_elsewhere(program) and not frameworks(program) & CARING


_GROUP_CALLS = (
    "jax.distributed.initialize",
    "deepspeed.init_distributed",
    "horovod.torch.init",
    "horovod.tensorflow.init",
    "horovod.tensorflow.keras.init",
    "torch.distributed.init_device_mesh",
    "torch.distributed.device_mesh.init_device_mesh",
)


def _sign_in(program: Program) -> str | None:
    if groups(program):
        return "it calls init_process_group"
    for call in program.called(*_GROUP_CALLS):
        return f"it calls {call.name}"
    if any(_is_many(trainer) for trainer in lightning_trainers(program)):
        return "Lightning's Trainer takes its rank from Slurm"
    for read in program.env_reads:
        if read.name in RANK | LOCAL_RANK | WORLD_SIZE:
            return f"it reads {read.name}"
    if program.uses("mpi4py") and not program.uses("mpi4py.futures"):
        if not any(program.methods("Spawn", "Spawn_multiple")):
            return "it is an MPI program"
    return None


def _is_many(trainer: Call) -> bool:
    """Whether a Trainer is told of several devices or nodes."""
    accelerator = trainer.keyword("accelerator")
    is_cpu = accelerator is not None and accelerator.literal == "cpu"
    for name in ("devices", "num_nodes"):
        value = trainer.keyword(name)
        if value is not None and whole(value) not in (0, 1):
            return True
        # All GPUs that there are.
        if value is None and name == "devices" and not is_cpu and not trainer.is_open:
            return True
    strategy = trainer.keyword("strategy")
    literal = strategy.literal if strategy is not None else None
    return str(literal).startswith(("ddp", "fsdp", "deepspeed"))


def hands_out(program: Program) -> bool:
    """Whether a program starts others on its own: through srun, ssh, submitit, Ray."""
    if program.uses("submitit", "ray", "dask", "distributed", "mpi4py.futures", "parsl"):
        return True
    return any(_OWN_LAUNCH.search(process.text) for process in processes(program))


def runs_apart(launch: Launch) -> bool:
    """Whether each task is a run of its own: a seed, a fold, a file by the task's number."""
    before = ""
    for word in launch.words[1:]:
        if word.uses(*_OF_A_TASK, where=TASK):
            name = word.text.partition("=")[0] if "=" in word.text else before
            if not _RANK_OPTION.search(name.partition("$")[0]):
                return True
        before = word.text if word.text.startswith("-") else ""
    return any(
        assignment.where == TASK
        and assignment.value.uses(*_OF_A_TASK, where=TASK)
        and not _RANK_OPTION.search(name)
        and not name.endswith("VISIBLE_DEVICES")
        for name, assignment in launch.environment.items()
    )


def shares_on_purpose(job: Job, launch: Launch) -> bool:
    """Whether processes of a program may share a GPU, or need none."""
    if runs_apart(launch) or any("mpi4py" in word.text for word in launch.words):
        return True
    if launch.launcher is not None and launch.launcher.option("cpu", "use_cpu") is not None:
        return True
    program = job.program(launch)
    if program is None:
        is_mpi = launch.step is not None and launch.step.option("mpi") is not None
        # pyxis' jobs often name the MPI plugin, whatever they run.
        if is_mpi and launch.container is None and launch.launcher is None:
            return True
        return is_preparation(launch) and launch.launcher is None
    if program.uses("mpi4py"):
        return True
    if not is_plain(program):
        return False
    if not program.uses("torch", "tensorflow", "jax"):
        return True
    backends = [group.call.text(0, "backend") for group in groups(program)]
    return bool(backends) and all(backend in ("gloo", "mpi") for backend in backends)


_PREPARATION = re.compile(
    r"prep|download|convert|tokeni[sz]|stage|staging|unpack|split|merge|plot|postproc|collect|"
    r"aggregate|summar|report|setup|install",
    re.IGNORECASE,
)


def is_preparation(launch: Launch) -> bool:
    """Whether a program's name says that it is no training: it prepares or looks through data."""
    name = launch.python or launch.module or ""
    return bool(_PREPARATION.search(name.rpartition("/")[2]))
