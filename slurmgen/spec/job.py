"""JobSpec: the job file as a model. Keys are Slurm's own long options with underscores.

Every value is kept in the one canonical spelling that its directive will have, so that
a spec that validates has nothing left to parse. Field validators see one value each;
what concerns several keys is in `spec/checks.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from slurmgen.spec import checks
from slurmgen.spec import fields as f
from slurmgen.spec.base import SpecModel
from slurmgen.spec.quick import MOST, MOST_TASKS
from slurmgen.spec.requeue import MAX_RESTARTS, SIGNAL
from slurmgen.spec.setup import Setup

# Tasks in all: no job has more, and a plan of them can still be drawn.
Tasks = Annotated[int, Field(ge=1, le=MOST_TASKS)]
# Slurm keeps counts of nodes, of tasks on a node and of CPUs in 16 bits, and uses the top
# values itself (NO_VAL16 in slurm/slurm.h).
Count = Annotated[int, Field(ge=1, le=MOST)]
# The tag is how `explain` words what else the key takes.
CpuCount = Annotated[
    Annotated[Count, Tag("or default")] | Annotated[Literal["default"], Tag("default")],
    Discriminator(lambda value: value if value == "default" else "or default"),
]


class Requeue(SpecModel):
    """A job that comes back: it is told to save in time, and its exit status 75 requeues it."""

    signal: f.RequeueSignal = Field(
        SIGNAL, description="USR1 or USR2, and how many seconds before the time limit"
    )
    max_restarts: f.Restarts = Field(
        MAX_RESTARTS, description="how often it may come back, preemptions by Slurm counted too"
    )


def _requeue_form(value: Any) -> str:
    """Which of the two forms of `requeue` is meant, so that errors speak of one."""
    return "block" if isinstance(value, (dict, Requeue)) else "switch"


class JobSpec(SpecModel):
    """One job. Everything that validates here can be rendered.

    Raises (as Pydantic's ValidationError) a Refusal for every value that means nothing,
    that Slurm refuses, or that Slurm accepts and takes for something else.
    """

    job_name: f.Name | None = Field(None, description="default: the job file's name")
    comment: f.Name | None = None
    account: f.Identifier | None = None
    partition: f.NameList | None = Field(
        None, description="auto: the first of the cluster profile's that takes the job"
    )
    qos: f.Identifier | None = Field(None, description="auto: as for partition")
    reservation: f.Identifier | None = None
    constraint: f.Constraint | None = Field(None, examples=["a100&nvlink"])

    nodes: f.NodeCount = Field(1, ge=1, le=MOST, description="number of nodes")
    gpus_per_node: f.GpuCount | None = Field(
        None, description="[type:]count", examples=["a100:4", "4"]
    )
    ntasks_per_node: Count | None = None
    ntasks: Tasks | None = Field(None, description="tasks in all, for jobs without GPUs")
    gpu_form: Literal["gres", "gpus-per-node"] | None = Field(
        None, description="the option by which GPUs are asked for; default: the cluster's"
    )
    nproc_per_node: Count | None = Field(
        None, description="ranks per node that torchrun or spawn start; default: one per GPU"
    )
    cpus_per_task: CpuCount | None = Field(
        None, description="default: no such option, but what Slurm or the site takes for it"
    )
    cpus_per_gpu: Count | None = Field(
        None, description="becomes --cpus-per-task, by the GPUs of a task"
    )
    mem: f.Memory | None = Field(None, description="per node; 0: all", examples=["64G"])
    mem_per_cpu: f.Memory | None = None
    mem_per_gpu: f.Memory | None = None
    gres: f.Gres | None = Field(None, description="other than GPUs", examples=["nvme:1"])
    exclusive: f.Exclusive | None = Field(None, examples=["true", "user"])
    nodelist: f.HostList | None = Field(None, examples=["n[1-4]"])
    exclude: f.HostList | None = None
    licenses: f.Licenses | None = None

    time: f.Time | None = Field(None, examples=["4:00:00", "90m", "2d12h"])
    time_min: f.Time | None = None
    begin: f.Begin | None = None
    deadline: f.Begin | None = None
    array: f.Array | None = Field(None, examples=["0-15%4"])
    dependency: f.Dependency | None = Field(None, examples=["afterok:1234"])
    signal: f.Signal | None = Field(None, examples=["USR1@120"])
    requeue: (
        Annotated[
            Annotated[bool, Tag("switch")] | Annotated[Requeue, Tag("block")],
            Discriminator(_requeue_form),
        ]
        | None
    ) = Field(
        None,
        description="true, false: whether Slurm may start the job again; or what makes it save "
        "and come back",
        examples=["{signal: USR1@180, max_restarts: 20}"],
    )
    mail_type: f.MailType | None = Field(None, examples=["END,FAIL"])
    mail_user: f.NameList | None = None
    output: f.LogPattern | None = Field(None, examples=["logs/%x-%j.out"])
    error: f.LogPattern | None = None
    input: f.LogPattern | None = None
    open_mode: f.OpenMode | None = Field(None, examples=["append", "truncate"])
    chdir: f.Directory | None = None
    export: f.Export | None = None
    sbatch: f.OtherOptions = Field(
        default_factory=dict,
        description="other sbatch options; a site plugin's own as {value: …, plugin: true}",
    )

    template: f.TemplateName = "job"
    launcher: Literal["srun", "torchrun", "spawn", "plain"] = "srun"
    rdzv: Literal["static", "c10d"] = Field("static", description="torchrun's rendezvous")
    setup: Setup = Setup()
    env: f.Environment = Field(default_factory=dict)
    command: f.Command | None = Field(
        None,
        description="text is Bash, evaluated in each task up to the first line that fails; a list "
        "is literal words",
    )
    ddp: f.Word | None = Field(
        None, description="train.py or package.module:function, under the bundled entrypoint"
    )
    args: f.Words = Field((), description="arguments for `ddp`")
    script: f.Script | None = Field(
        None,
        description="a batch script of your own, kept as it is, in place of everything that would "
        "be rendered below the directives",
    )

    @model_validator(mode="after")
    def _check_together(self) -> JobSpec:
        checks.check_together(self)
        return self
