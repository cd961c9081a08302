"""JobSpec: the job file as a model. Keys are Slurm's own long options with underscores.

Every value is kept in the one canonical spelling that its directive will have, so that
a spec that validates has nothing left to parse. Field validators see one value each;
what concerns several keys is in `spec/checks.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from slurmgen import launchers
from slurmgen.spec import checks
from slurmgen.spec import fields as f
from slurmgen.spec.base import SpecModel
from slurmgen.spec.quick import MOST, MOST_TASKS
from slurmgen.spec.requeue import MAX_RESTARTS, ON_NODE_FAIL, SIGNAL
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
    on_node_fail: bool = Field(
        False, description="also where a node or the network is gone (exit status 69)"
    )


def _requeue_form(value: Any) -> str:
    """Which of the forms of `requeue` is meant, so that errors speak of one."""
    if isinstance(value, (dict, Requeue)):
        return "block"
    return ON_NODE_FAIL if value == ON_NODE_FAIL else "switch"


class JobSpec(SpecModel):
    """One job. Everything that validates here can be rendered.

    Raises (as Pydantic's ValidationError) a Refusal for every value that means nothing,
    that Slurm refuses, or that Slurm accepts and takes for something else.
    """

    job_name: f.Name | None = Field(None, description="default: the job file's name")
    comment: f.Name | None = Field(None, description="free text that Slurm keeps with the job")
    account: f.Identifier | None = Field(
        None,
        description="the project that pays, --account",
        examples=["proj42"],
    )
    partition: f.NameList | None = Field(
        None,
        description="where the job runs, --partition; several: the first that can start it; "
        "auto: the first of the cluster profile's that takes the job",
        examples=["gpu"],
    )
    qos: f.Identifier | None = Field(
        None, description="quality of service, --qos; auto: as for partition"
    )
    reservation: f.Identifier | None = Field(
        None,
        description="nodes that were set aside, --reservation",
    )
    constraint: f.Constraint | None = Field(
        None,
        description="features that the nodes must have",
        examples=["a100&nvlink"],
    )

    nodes: f.NodeCount = Field(1, ge=1, le=MOST, description="number of nodes")
    gpus_per_node: f.GpuCount | None = Field(
        None, description="GPUs of each node: [type:]count", examples=["a100:4", "4"]
    )
    ntasks_per_node: Count | None = Field(
        None,
        description="tasks of each node; default: what the launcher starts there",
    )
    ntasks: Tasks | None = Field(None, description="tasks in all, for jobs without GPUs")
    gpu_form: Literal["gres", "gpus-per-node"] | None = Field(
        None, description="the option by which GPUs are asked for; default: the cluster's"
    )
    nproc_per_node: Count | None = Field(
        None, description="ranks per node that torchrun or spawn start; default: one per GPU"
    )
    cpus_per_task: CpuCount | None = Field(
        None,
        description="CPUs of each task; the word `default`: no such option, but what Slurm or the "
        "site takes for it",
    )
    cpus_per_gpu: Count | None = Field(
        None, description="becomes --cpus-per-task, by the GPUs of a task"
    )
    mem: f.Memory | None = Field(
        None,
        description="memory of each node, with K, M, G or T (MiB without); 0: all",
        examples=["64G"],
    )
    mem_per_cpu: f.Memory | None = Field(
        None,
        description="memory of each CPU of the job; MiB without a unit",
        examples=["4G"],
    )
    mem_per_gpu: f.Memory | None = Field(
        None,
        description="memory of the job for each of its GPUs; MiB without a unit",
        examples=["60G"],
    )
    gres: f.Gres | None = Field(None, description="other than GPUs", examples=["nvme:1"])
    exclusive: f.Exclusive | None = Field(
        None,
        description="nodes of the job's own: no other job, or none of another user",
        examples=["true", "user"],
    )
    nodelist: f.HostList | None = Field(
        None,
        description="nodes that the job must get",
        examples=["n[1-4]"],
    )
    exclude: f.HostList | None = Field(
        None,
        description="nodes the job must not get",
        examples=["n[7-8]"],
    )
    licenses: f.Licenses | None = Field(
        None,
        description="name[:count] of the licenses the job takes",
        examples=["matlab:1"],
    )

    time: f.Time | None = Field(
        None,
        description="time limit: H:M:S, D-H:M:S, or such as 90m, 4h, 2d12h; a plain number is "
        "minutes",
        examples=["4:00:00", "90m", "2d12h"],
    )
    time_min: f.Time | None = Field(
        None,
        description="the least time limit that will do, --time-min",
    )
    begin: f.Begin | None = Field(
        None,
        description="not before this time",
        examples=["now+1hour", "2026-01-20T12:34:00"],
    )
    deadline: f.Begin | None = Field(
        None,
        description="the job is removed where it cannot end before this time",
    )
    array: f.Array | None = Field(
        None,
        description="indices of an array of jobs, and behind % how many run at once",
        examples=["0-15%4"],
    )
    dependency: f.Dependency | None = Field(
        None,
        description="which jobs must have begun or ended before",
        examples=["afterok:1234"],
    )
    signal: f.Signal | None = Field(
        None,
        description="a signal, and how many seconds before the time limit",
        examples=["USR1@120"],
    )
    requeue: (
        Annotated[
            Annotated[bool, Tag("switch")]
            | Annotated[Literal["on_node_fail"], Tag(ON_NODE_FAIL)]
            | Annotated[Requeue, Tag("block")],
            Discriminator(_requeue_form),
        ]
        | None
    ) = Field(
        None,
        description="true, false: whether Slurm may start the job again; on_node_fail: also where "
        "the entrypoint has lost a node; or what makes it save and come back",
        examples=["{signal: USR1@180, max_restarts: 20}", "on_node_fail"],
    )
    mail_type: f.MailType | None = Field(
        None,
        description="what Slurm sends mail about",
        examples=["END,FAIL"],
    )
    mail_user: f.NameList | None = Field(
        None,
        description="who gets the mail",
        examples=["me@example.org"],
    )
    output: f.LogPattern | None = Field(
        None,
        description="the log: %x is the job's name, %j its id, %A_%a that of an array task; submit "
        "makes the folder",
        examples=["logs/%x-%j.out"],
    )
    error: f.LogPattern | None = Field(
        None,
        description="the file of standard error; default: that of output",
    )
    input: f.LogPattern | None = Field(None, description="the file of standard input")
    open_mode: f.OpenMode | None = Field(
        None,
        description="what becomes of a log that is there already",
        examples=["append", "truncate"],
    )
    chdir: f.Directory | None = Field(
        None,
        description="the working folder, --chdir; default: where the job was submitted",
        examples=["/scratch/me"],
    )
    export: f.Export | None = Field(
        None,
        description="what the job gets of the environment it was submitted from: NONE, ALL, NIL or "
        "names",
        examples=["NONE"],
    )
    sbatch: f.OtherOptions = Field(
        default_factory=dict,
        description="other sbatch options; a site plugin's own as {value: …, plugin: true}",
    )

    template: f.TemplateName = Field("job", description="the template, without .sbatch.j2")
    vars: f.Variables = Field(
        default_factory=dict,
        description="what the project's own template reads as vars.NAME: text (a Bash word when it "
        "is printed), a whole number, true or false, or a list of them",
        examples=[{"profile": "true"}],
    )
    launcher: launchers.Name = Field(
        launchers.DEFAULT,
        description="; ".join(f"{one.name}: {one.about}" for one in launchers.every()),
    )
    rdzv: Literal["static", "c10d"] = Field("static", description="torchrun's rendezvous")
    setup: Setup = Field(
        Setup(),
        description="what happens on the first node before the program starts: modules, an "
        "environment, a container, commands",
    )
    env: f.Environment = Field(
        default_factory=dict,
        description="variables of the program; ${NAME} in a value expands on the node",
        examples=[{"NCCL_DEBUG": "WARN"}],
    )
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
