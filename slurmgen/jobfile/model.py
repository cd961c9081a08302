"""The keys of the job file as a model. Keys are Slurm's own long options with underscores.

Every value prints itself in the one canonical spelling that its directive will have: GPUs,
arrays, times and memory are values that were parsed once, the others that spelling itself.
The annotations are the keys' types; what else is known of a key, its default too, is in
`jobfile/keys.py`. Field validators see one value each; what concerns several keys is in
`jobfile/checks.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from slurmgen import launchers
from slurmgen.jobfile import fields as f
from slurmgen.jobfile.base import SpecModel
from slurmgen.jobfile.fields import given
from slurmgen.jobfile.keys import KEYS, REQUEUE
from slurmgen.jobfile.readers import MOST, MOST_TASKS
from slurmgen.jobfile.requeue import ON_NODE_FAIL
from slurmgen.jobfile.setup import Setup

Tasks = Annotated[int, Field(ge=1, le=MOST_TASKS)]
Count = Annotated[int, Field(ge=1, le=MOST)]
# The tag is how `explain` words what else the key takes.
CpuCount = Annotated[
    Annotated[Count, Tag("or default")] | Annotated[Literal["default"], Tag("default")],
    Discriminator(lambda value: value if value == "default" else "or default"),
]


class Requeue(SpecModel):
    """A job that comes back: it is told to save in time, and its exit status 75 requeues it."""

    signal: f.RequeueSignal = given(REQUEUE["signal"])
    max_restarts: f.Restarts = given(REQUEUE["max_restarts"])
    on_node_fail: bool = given(REQUEUE["on_node_fail"])


def _requeue_form(value: Any) -> str:
    """Which of the forms of `requeue` is meant, so that errors speak of one."""
    if isinstance(value, (dict, Requeue)):
        return "block"
    return ON_NODE_FAIL if value == ON_NODE_FAIL else "switch"


Requeueing = Annotated[
    Annotated[bool, Tag("switch")]
    | Annotated[Literal["on_node_fail"], Tag(ON_NODE_FAIL)]
    | Annotated[Requeue, Tag("block")],
    Discriminator(_requeue_form),
]


class JobKeys(SpecModel):
    """Every key with its type; what they mean together is not looked at."""

    # Nobody makes one: what is derived from it is built.
    model_config = ConfigDict(defer_build=True)

    job_name: f.Name | None = given(KEYS["job_name"])
    comment: f.Name | None = given(KEYS["comment"])
    account: f.Identifier | None = given(KEYS["account"])
    partition: f.NameList | None = given(KEYS["partition"])
    qos: f.Identifier | None = given(KEYS["qos"])
    reservation: f.Identifier | None = given(KEYS["reservation"])
    constraint: f.Constraint | None = given(KEYS["constraint"])

    nodes: f.NodeCount = given(KEYS["nodes"], ge=1, le=MOST)
    ntasks: Tasks | None = given(KEYS["ntasks"])
    ntasks_per_node: Count | None = given(KEYS["ntasks_per_node"])
    gpus_per_node: f.GpuCount | None = given(KEYS["gpus_per_node"])
    gpu_form: Literal["gres", "gpus-per-node"] | None = given(KEYS["gpu_form"])
    gres: f.Gres | None = given(KEYS["gres"])
    cpus_per_task: CpuCount | None = given(KEYS["cpus_per_task"])
    cpus_per_gpu: Count | None = given(KEYS["cpus_per_gpu"])
    mem: f.MemorySize | None = given(KEYS["mem"])
    mem_per_cpu: f.MemorySize | None = given(KEYS["mem_per_cpu"])
    mem_per_gpu: f.MemorySize | None = given(KEYS["mem_per_gpu"])
    exclusive: f.Exclusive | None = given(KEYS["exclusive"])
    nodelist: f.HostList | None = given(KEYS["nodelist"])
    exclude: f.HostList | None = given(KEYS["exclude"])
    licenses: f.Licenses | None = given(KEYS["licenses"])

    time: f.TimeLimit | None = given(KEYS["time"])
    time_min: f.TimeLimit | None = given(KEYS["time_min"])
    begin: f.Begin | None = given(KEYS["begin"])
    deadline: f.Begin | None = given(KEYS["deadline"])
    array: f.Array | None = given(KEYS["array"])
    dependency: f.Dependency | None = given(KEYS["dependency"])
    signal: f.Signal | None = given(KEYS["signal"])

    mail_type: f.MailType | None = given(KEYS["mail_type"])
    mail_user: f.NameList | None = given(KEYS["mail_user"])
    output: f.LogPattern | None = given(KEYS["output"])
    error: f.LogPattern | None = given(KEYS["error"])
    input: f.LogPattern | None = given(KEYS["input"])
    open_mode: f.OpenMode | None = given(KEYS["open_mode"])
    chdir: f.Directory | None = given(KEYS["chdir"])
    export: f.Export | None = given(KEYS["export"])
    requeue: Requeueing | None = given(KEYS["requeue"])
    sbatch: f.OtherOptions = given(KEYS["sbatch"])

    launcher: launchers.Name = given(
        KEYS["launcher"],
        description="; ".join(f"{one.name}: {one.about}" for one in launchers.every()),
    )
    rdzv: Literal["static", "c10d"] = given(KEYS["rdzv"])
    nproc_per_node: Count | None = given(KEYS["nproc_per_node"])
    setup: Setup = given(KEYS["setup"], default=Setup())
    env: f.Environment = given(KEYS["env"])
    template: f.TemplateName = given(KEYS["template"])
    vars: f.Variables = given(KEYS["vars"])
    command: f.Command | None = given(KEYS["command"])
    ddp: f.Word | None = given(KEYS["ddp"])
    args: f.Words = given(KEYS["args"])
    script: f.Script | None = given(KEYS["script"])
