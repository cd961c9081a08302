"""The keys of a job as Python may give them, for editors and type checkers; at no run time.

From `slurmgen/jobfile/keys.py` and the JSON Schema; written by `make docs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

Scalar = str | float | bool


class ContainerKeys(TypedDict, total=False):
    """`container` of `setup`."""

    image: str | float
    """a .sif file, a docker:// address, or what pyxis takes"""

    runtime: Literal["apptainer", "singularity", "pyxis"] | None
    """default: the cluster profile's, else pyxis for .sqsh, else apptainer"""

    mounts: str | float | Sequence[str | float]

    gpu: Literal["nvidia", "rocm", "none"] | None
    """--nv or --rocm for apptainer; default: by the job's GPUs"""

    workdir: str | float | None
    """working folder inside the container"""


class ModulesKeys(TypedDict, total=False):
    """`modules` of `setup`."""

    purge: bool
    """run `module purge` first"""

    use: str | float | Sequence[str | float]
    """folders for `module use`"""

    load: Scalar | Sequence[Scalar]


class RequeueKeys(TypedDict, total=False):
    """`requeue`."""

    signal: Scalar
    """USR1 or USR2, and how many seconds before the time limit"""

    max_restarts: str | int
    """how often it may come back, preemptions by Slurm counted too"""

    on_node_fail: bool
    """also where a node or the network is gone (exit status 69)"""


class SetupKeys(TypedDict, total=False):
    """`setup`."""

    modules: ModulesKeys | Scalar | Sequence[Scalar] | None
    """environment modules"""

    venv: str | float | None
    """folder of a Python virtual environment"""

    conda: str | float | None
    """name or folder of a conda environment"""

    uv: str | float | None
    """folder of a uv project that has been synced"""

    container: ContainerKeys | str | float | None
    """the container that every task runs in"""

    commands: Scalar | Sequence[Scalar]
    """Bash, evaluated once in the batch shell"""


class Keys(TypedDict, total=False):
    """What `Job(…)` takes."""

    job_name: Scalar | None
    """default: the job file's name"""

    comment: Scalar | None
    """free text that Slurm keeps with the job"""

    account: Scalar | None
    """the project that pays, --account"""

    partition: Scalar | Sequence[Scalar] | None
    """where the job runs, --partition; several: the first that can start it; auto: the first of
    the cluster profile's that takes the job
    """

    qos: Scalar | None
    """quality of service, --qos; auto: as for partition"""

    reservation: Scalar | None
    """nodes that were set aside, --reservation"""

    constraint: Scalar | None
    """features that the nodes must have"""

    nodes: str | int
    """number of nodes"""

    ntasks: int | str | None
    """tasks in all, for jobs without GPUs"""

    ntasks_per_node: int | str | None
    """tasks of each node; default: what the launcher starts there"""

    gpus_per_node: str | int | None
    """GPUs of each node: [type:]count"""

    gpu_form: Literal["gres", "gpus-per-node"] | None
    """the option by which GPUs are asked for; default: the cluster's"""

    gres: Scalar | Sequence[Scalar] | None
    """other than GPUs"""

    cpus_per_task: int | str | Literal["default"] | None
    """CPUs of each task; the word `default`: no such option, but what Slurm or the site takes
    for it
    """

    cpus_per_gpu: int | str | None
    """becomes --cpus-per-task, by the GPUs of a task"""

    mem: str | int | None
    """memory of each node, with K, M, G or T (MiB without); 0: all"""

    mem_per_cpu: str | int | None
    """memory of each CPU of the job; MiB without a unit"""

    mem_per_gpu: str | int | None
    """memory of the job for each of its GPUs; MiB without a unit"""

    exclusive: Literal[True, False, "user", "mcs", "topo", "true", "false"] | None
    """nodes of the job's own: no other job, or none of another user"""

    nodelist: Scalar | Sequence[Scalar] | None
    """nodes that the job must get"""

    exclude: Scalar | Sequence[Scalar] | None
    """nodes the job must not get"""

    licenses: Scalar | Sequence[Scalar] | None
    """name[:count] of the licenses the job takes"""

    time: str | int | None
    """time limit: H:M:S, D-H:M:S, or such as 90m, 4h, 2d12h; a plain number is minutes"""

    time_min: str | int | None
    """the least time limit that will do, --time-min"""

    begin: Scalar | None
    """not before this time"""

    deadline: Scalar | None
    """the job is removed where it cannot end before this time"""

    array: str | int | Sequence[str | int] | None
    """indices of an array of jobs, and behind % how many run at once"""

    dependency: Scalar | None
    """which jobs must have begun or ended before"""

    signal: Scalar | None
    """a signal, and how many seconds before the time limit"""

    mail_type: Scalar | Sequence[Scalar] | None
    """what Slurm sends mail about"""

    mail_user: Scalar | Sequence[Scalar] | None
    """who gets the mail"""

    output: Scalar | None
    """the log: %x is the job's name, %j its id, %A_%a that of an array task; submit makes the
    folder
    """

    error: Scalar | None
    """the file of standard error; default: that of output"""

    input: Scalar | None
    """the file of standard input"""

    open_mode: str | None
    """what becomes of a log that is there already"""

    chdir: Scalar | None
    """the working folder, --chdir; default: where the job was submitted"""

    export: Scalar | None
    """what the job gets of the environment it was submitted from: NONE, ALL, NIL or names"""

    requeue: bool | Literal["on_node_fail"] | RequeueKeys | None
    """true, false: whether Slurm may start the job again; on_node_fail: also where the
    entrypoint has lost a node; or what makes it save and come back
    """

    sbatch: Mapping[str, object]
    """other sbatch options; a site plugin's own as {value: …, plugin: true}"""

    launcher: Literal["srun", "torchrun", "spawn", "plain"]
    """srun: a task, and so a rank, per GPU; torchrun: a task per node, which starts a rank per
    GPU; spawn: a task per node, where the program starts its own ranks; plain: one process
    """

    rdzv: Literal["static", "c10d"]
    """torchrun's rendezvous"""

    nproc_per_node: int | str | None
    """ranks per node that torchrun or spawn start; default: one per GPU"""

    setup: SetupKeys
    """what happens on the first node before the program starts: modules, an environment, a
    container, commands
    """

    env: Mapping[str, Scalar]
    """variables of the program; ${NAME} in a value expands on the node"""

    template: Scalar
    """the template, without .sbatch.j2"""

    vars: Mapping[str, Scalar | Sequence[Scalar]]
    """what the project's own template reads as vars.NAME: text (a Bash word when it is printed),
    a whole number, true or false, or a list of them
    """

    command: str | Sequence[Scalar] | None
    """text is Bash, evaluated in each task up to the first line that fails; a list is literal
    words
    """

    ddp: Scalar | None
    """train.py or package.module:function, under the bundled entrypoint"""

    args: Scalar | Sequence[Scalar]
    """arguments for `ddp`"""

    script: str | None
    """a batch script of your own, kept as it is, in place of everything that would be rendered
    below the directives
    """
