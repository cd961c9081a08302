"""The keys of the job file: all that is known of each, once.

The order is that of the directives in a script, and of the keys in an imported job file.
From here come the reader without Pydantic (`without_pydantic.py`), the defaults and the words of
the model (`model.py`, whose annotations are its types), what an option of sbatch has a key for,
an import's keys, the JSON Schema, `given.py` and docs/reference/job-file.md. Without Pydantic,
which costs more than rendering.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from slurmgen import launchers
from slurmgen.jobfile import kinds, readers
from slurmgen.jobfile.blocks import read_block
from slurmgen.jobfile.kinds import Kind, one_of
from slurmgen.jobfile.requeue import MAX_RESTARTS, ON_NODE_FAIL, SIGNAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.diagnostics import KeyPath
    from slurmgen.jobfile.readers import Reader

# What becomes of a key among the directives:
COPIED = "copied"  # the option of the same name, with the key's value
DECIDED = "decided"  # the same option, whose value the plan decides; copied beside a `script`
NONE = "none"  # no option of sbatch

# Where the reference has a key.
_WHO = "What the job is called, and who pays"
_NEEDS = "What it needs"
_WHEN = "When, and how often"
_LOGS = "Logs and mail"
_RUNS = "What runs"
_AROUND = "What is around it"


class Key(NamedTuple):
    """One key of the job file, or of a block of it.

    description: what it is; `default: ` in it introduces the words for a default that is
    not one value. examples: as YAML; needs: the keys, as YAML, without which the first one
    would not be a job's. becomes: COPIED, DECIDED or NONE. beside_script: whether it may be
    given with a `script` of the job's own. in_profile: whether a cluster's profile may have
    a default for it.
    """

    kind: Kind
    description: str = ""
    examples: tuple[str, ...] = ()
    default: Any = None
    group: str = ""
    becomes: str = COPIED
    needs: str = ""
    beside_script: bool = True
    in_profile: bool = True


class Directive(NamedTuple):
    """One `#SBATCH --option=value` line (`value` None: a flag) and the key it came from."""

    option: str
    value: str | None
    key: KeyPath


def _readers(keys: Mapping[str, Key]) -> dict[str, Reader]:
    return {name: key.kind.read for name, key in keys.items()}


def _defaults(keys: Mapping[str, Key]) -> dict[str, Any]:
    return {name: key.default for name, key in keys.items()}


# --- blocks inside the job file ------------------------------------------------------------

REQUEUE = {
    "signal": Key(
        kinds.REQUEUE_SIGNAL,
        "USR1 or USR2, and how many seconds before the time limit",
        default=SIGNAL,
    ),
    "max_restarts": Key(
        kinds.RESTARTS,
        "how often it may come back, preemptions by Slurm counted too",
        default=MAX_RESTARTS,
    ),
    "on_node_fail": Key(
        kinds.TRUTH, "also where a node or the network is gone (exit status 69)", default=False
    ),
}
MODULES = {
    "purge": Key(kinds.TRUTH, "run `module purge` first", default=False),
    "use": Key(kinds.PATHS, "folders for `module use`", default=()),
    "load": Key(kinds.MODULE_NAMES, examples=("[cuda/12.4]",), default=()),
}
CONTAINER = {
    "image": Key(kinds.PATH, "a .sif file, a docker:// address, or what pyxis takes"),
    "runtime": Key(
        one_of("apptainer", "singularity", "pyxis"),
        "default: the cluster profile's, else pyxis for .sqsh, else apptainer",
    ),
    "mounts": Key(kinds.PATHS, examples=("[/data, '/scratch/me:/out:ro']",), default=()),
    "gpu": Key(
        one_of("nvidia", "rocm", "none"), "--nv or --rocm for apptainer; default: by the job's GPUs"
    ),
    "workdir": Key(kinds.PATH, "working folder inside the container"),
}


def _modules(value: Any) -> SimpleNamespace:
    """A bare list means `load`."""
    given = value if isinstance(value, dict) else {"load": value}
    return read_block(given, _MODULES, _MODULES_DEFAULTS)


def _container(value: Any) -> SimpleNamespace:
    """A bare text is the image."""
    given = value if isinstance(value, dict) else {"image": value}
    if given.get("image") is None:
        raise readers.Doubtful
    return read_block(given, _CONTAINER, _CONTAINER_DEFAULTS)


_MODULES, _MODULES_DEFAULTS = _readers(MODULES), _defaults(MODULES)
_CONTAINER, _CONTAINER_DEFAULTS = _readers(CONTAINER), _defaults(CONTAINER)

SETUP = {
    "modules": Key(Kind(_modules), "environment modules", ("[cuda/12.4]",)),
    "venv": Key(kinds.PATH, "folder of a Python virtual environment"),
    "conda": Key(kinds.PATH, "name or folder of a conda environment"),
    "uv": Key(kinds.PATH, "folder of a uv project that has been synced"),
    "container": Key(Kind(_container), "the container that every task runs in", ("train.sif",)),
    "commands": Key(kinds.BASH_LINES, "Bash, evaluated once in the batch shell", default=()),
}


def _setup(value: Any) -> SimpleNamespace:
    if not isinstance(value, dict):
        raise readers.Doubtful
    return read_block(value, _SETUP, _SETUP_DEFAULTS)


def _requeue(value: Any) -> bool | str | SimpleNamespace:
    if isinstance(value, dict):
        return read_block(value, _REQUEUE, _REQUEUE_DEFAULTS)
    return ON_NODE_FAIL if value == ON_NODE_FAIL else readers.truth(value)


_SETUP, _SETUP_DEFAULTS = _readers(SETUP), _defaults(SETUP)
_REQUEUE, _REQUEUE_DEFAULTS = _readers(REQUEUE), _defaults(REQUEUE)

# By the names of their models.
BLOCKS = {"Requeue": REQUEUE, "Modules": MODULES, "Container": CONTAINER, "Setup": SETUP}


def _options(value: Any) -> dict[str, str | None]:
    """`sbatch:`, whose options are imported only for a job that has it."""
    from slurmgen.jobfile.options import read_options

    return read_options(value, OPTIONS)


# --- the job file --------------------------------------------------------------------------

KEYS = {
    "job_name": Key(
        kinds.NAME, "default: the job file's name", ("resnet50",), group=_WHO, becomes=DECIDED
    ),
    "comment": Key(
        kinds.NAME, "free text that Slurm keeps with the job", ("third try",), group=_WHO
    ),
    "account": Key(kinds.IDENTIFIER, "the project that pays, --account", ("proj42",), group=_WHO),
    "partition": Key(
        kinds.NAME_LIST,
        "where the job runs, --partition; several: the first that can start it; "
        "auto: the first of the cluster profile's that takes the job",
        ("gpu",),
        group=_WHO,
    ),
    "qos": Key(
        kinds.IDENTIFIER, "quality of service, --qos; auto: as for partition", ("high",), group=_WHO
    ),
    "reservation": Key(
        kinds.IDENTIFIER, "nodes that were set aside, --reservation", ("maintenance",), group=_WHO
    ),
    "constraint": Key(
        kinds.CONSTRAINT, "features that the nodes must have", ("a100&nvlink",), group=_WHO
    ),
    "nodes": Key(kinds.NODES, "number of nodes", ("2",), default=1, group=_NEEDS, becomes=DECIDED),
    "ntasks": Key(
        kinds.TASKS,
        "tasks in all, for jobs without GPUs",
        ("5",),
        group=_NEEDS,
        becomes=DECIDED,
        needs="nodes: 2",
    ),
    "ntasks_per_node": Key(
        kinds.COUNT,
        "tasks of each node; default: what the launcher starts there",
        ("4",),
        group=_NEEDS,
        becomes=DECIDED,
    ),
    "gpus_per_node": Key(
        kinds.GPUS,
        "GPUs of each node: [type:]count",
        ("a100:4", "4"),
        group=_NEEDS,
        becomes=DECIDED,
    ),
    "gpu_form": Key(
        one_of("gres", "gpus-per-node"),
        "the option by which GPUs are asked for; default: the cluster's",
        ("gpus-per-node",),
        group=_NEEDS,
        becomes=NONE,
        needs="gpus_per_node: 4",
    ),
    "gres": Key(kinds.GRES, "other than GPUs", ("nvme:1",), group=_NEEDS, becomes=DECIDED),
    "cpus_per_task": Key(
        kinds.CPUS,
        "CPUs of each task; the word `default`: no such option, but what Slurm or the "
        "site takes for it",
        ("8",),
        group=_NEEDS,
        becomes=DECIDED,
    ),
    "cpus_per_gpu": Key(
        kinds.COUNT,
        "becomes --cpus-per-task, by the GPUs of a task",
        ("8",),
        group=_NEEDS,
        becomes=DECIDED,
        needs="gpus_per_node: 4",
    ),
    "mem": Key(
        kinds.MEMORY,
        "memory of each node, with K, M, G or T (MiB without); 0: all",
        ("64G",),
        group=_NEEDS,
        becomes=DECIDED,
    ),
    "mem_per_cpu": Key(
        kinds.MEMORY,
        "memory of each CPU of the job; MiB without a unit",
        ("4G",),
        group=_NEEDS,
        becomes=DECIDED,
    ),
    "mem_per_gpu": Key(
        kinds.MEMORY,
        "memory of the job for each of its GPUs; MiB without a unit",
        ("60G",),
        group=_NEEDS,
        becomes=DECIDED,
        needs="gpus_per_node: 4",
    ),
    "exclusive": Key(
        kinds.EXCLUSIVE,
        "nodes of the job's own: no other job, or none of another user",
        ("true", "user"),
        group=_NEEDS,
        becomes=DECIDED,
    ),
    "nodelist": Key(
        kinds.HOSTS, "nodes that the job must get", ("n[1-4]",), group=_NEEDS, needs="nodes: 4"
    ),
    "exclude": Key(kinds.HOSTS, "nodes the job must not get", ("n[7-8]",), group=_NEEDS),
    "licenses": Key(
        kinds.LICENSES, "name[:count] of the licenses the job takes", ("matlab:1",), group=_NEEDS
    ),
    "time": Key(
        kinds.TIME,
        "time limit: H:M:S, D-H:M:S, or such as 90m, 4h, 2d12h; a plain number is minutes",
        ("4:00:00", "90m", "2d12h"),
        group=_WHEN,
    ),
    "time_min": Key(
        kinds.TIME,
        "the least time limit that will do, --time-min",
        ("1h",),
        group=_WHEN,
        needs="time: 4h",
    ),
    "begin": Key(
        kinds.BEGIN, "not before this time", ("now+1hour", "2026-01-20T12:34:00"), group=_WHEN
    ),
    "deadline": Key(
        kinds.BEGIN,
        "the job is removed where it cannot end before this time",
        ("2030-01-20T12:00:00",),
        group=_WHEN,
    ),
    "array": Key(
        kinds.ARRAY,
        "indices of an array of jobs, and behind % how many run at once",
        ("0-15%4",),
        group=_WHEN,
    ),
    "dependency": Key(
        kinds.DEPENDENCY,
        "which jobs must have begun or ended before",
        ("afterok:1234",),
        group=_WHEN,
    ),
    "signal": Key(
        kinds.SIGNAL,
        "a signal, and how many seconds before the time limit",
        ("USR1@120",),
        group=_WHEN,
    ),
    "mail_type": Key(kinds.MAIL_TYPE, "what Slurm sends mail about", ("END,FAIL",), group=_LOGS),
    "mail_user": Key(kinds.NAME_LIST, "who gets the mail", ("me@example.org",), group=_LOGS),
    "output": Key(
        kinds.LOG,
        "the log: %x is the job's name, %j its id, %A_%a that of an array task; submit "
        "makes the folder",
        ("logs/%x-%j.out",),
        group=_LOGS,
    ),
    "error": Key(
        kinds.LOG,
        "the file of standard error; default: that of output",
        ("logs/%x-%j.err",),
        group=_LOGS,
    ),
    "input": Key(kinds.LOG, "the file of standard input", ("answers.txt",), group=_LOGS),
    "open_mode": Key(
        kinds.OPEN_MODE,
        "what becomes of a log that is there already",
        ("append", "truncate"),
        group=_LOGS,
    ),
    "chdir": Key(
        kinds.DIRECTORY,
        "the working folder, --chdir; default: where the job was submitted",
        ("/scratch/me",),
        group=_AROUND,
    ),
    "export": Key(
        kinds.EXPORT,
        "what the job gets of the environment it was submitted from: NONE, ALL, NIL or names",
        ("NONE",),
        group=_AROUND,
    ),
    "requeue": Key(
        Kind(_requeue, is_bare=True),
        "true, false: whether Slurm may start the job again; on_node_fail: also where "
        "the entrypoint has lost a node; or what makes it save and come back",
        ("true", "{signal: USR1@180, max_restarts: 20}", "on_node_fail"),
        group=_WHEN,
        becomes=DECIDED,
        needs="time: 4h",
    ),
    "sbatch": Key(
        Kind(_options),
        "other sbatch options; a site plugin's own as {value: …, plugin: true}",
        ("{hint: nomultithread, contiguous: true}",),
        default={},
        group=_AROUND,
        becomes=NONE,
        in_profile=False,
    ),
    "launcher": Key(
        one_of(*launchers.NAMES),
        "who starts the ranks",
        (launchers.NAMES[1],),
        default=launchers.DEFAULT,
        group=_RUNS,
        becomes=NONE,
        needs="nodes: 2\ngpus_per_node: 4",
        beside_script=False,
    ),
    "rdzv": Key(
        one_of("static", "c10d"),
        "torchrun's rendezvous",
        ("c10d",),
        default="static",
        group=_RUNS,
        becomes=NONE,
        needs="nodes: 2\ngpus_per_node: 4\nlauncher: torchrun",
        beside_script=False,
    ),
    "nproc_per_node": Key(
        kinds.COUNT,
        "ranks per node that torchrun or spawn start; default: one per GPU",
        ("4",),
        group=_RUNS,
        becomes=NONE,
        needs="launcher: torchrun",
        beside_script=False,
    ),
    "setup": Key(
        Kind(_setup),
        "what happens on the first node before the program starts: modules, an "
        "environment, a container, commands",
        ("\n  modules: [cuda/12.4]\n  venv: .venv\n  commands: [ulimit -n 65536]",),
        default=SimpleNamespace(**_SETUP_DEFAULTS),
        group=_AROUND,
        becomes=NONE,
        beside_script=False,
        in_profile=False,
    ),
    "env": Key(
        kinds.ENVIRONMENT,
        "variables of the program; ${NAME} in a value expands on the node",
        ("{NCCL_DEBUG: WARN, DATA: '${SCRATCH}/imagenet'}",),
        default={},
        group=_AROUND,
        becomes=NONE,
        beside_script=False,
        in_profile=False,
    ),
    "template": Key(
        kinds.TEMPLATE_NAME,
        "the template, without .sbatch.j2",
        ("job",),
        default="job",
        group=_AROUND,
        becomes=NONE,
    ),
    "vars": Key(
        kinds.VARIABLES,
        "what the project's own template reads as vars.NAME: text (a Bash word when it "
        "is printed), a whole number, true or false, or a list of them",
        ("{profile: true}",),
        default={},
        group=_AROUND,
        becomes=NONE,
        in_profile=False,
    ),
    "command": Key(
        kinds.COMMAND,
        "text is Bash, evaluated in each task up to the first line that fails; a list "
        "is literal words",
        ("python train.py --lr 1e-3",),
        group=_RUNS,
        becomes=NONE,
        beside_script=False,
        in_profile=False,
    ),
    "ddp": Key(
        kinds.WORD,
        "train.py or package.module:function, under the bundled entrypoint",
        ("train.py",),
        group=_RUNS,
        becomes=NONE,
        beside_script=False,
        in_profile=False,
    ),
    "args": Key(
        kinds.WORDS,
        "arguments for `ddp`",
        ("[--lr, 1e-3]",),
        default=(),
        group=_RUNS,
        becomes=NONE,
        needs="ddp: train.py",
        beside_script=False,
        in_profile=False,
    ),
    "script": Key(
        kinds.SCRIPT,
        "a batch script of your own, kept as it is, in place of everything that would "
        "be rendered below the directives",
        ("|\n  module load gcc\n  srun ./simulate",),
        group=_RUNS,
        becomes=NONE,
        in_profile=False,
    ),
}

READERS, DEFAULTS = _readers(KEYS), _defaults(KEYS)
# The option of sbatch that each key is called after, in the order of the directives.
OPTIONS = {n: n.replace("_", "-") for n, key in KEYS.items() if key.becomes != NONE}
# Those that the plan copies, before and behind what it decides.
_COPIED = [name for name, key in KEYS.items() if key.becomes == COPIED]
_FIRST = next(i for i, name in enumerate(OPTIONS) if i and KEYS[name].becomes == DECIDED)
COPIED_FIRST = {n: OPTIONS[n] for i, n in enumerate(OPTIONS) if n in _COPIED and i < _FIRST}
COPIED_LAST = {n: OPTIONS[n] for i, n in enumerate(OPTIONS) if n in _COPIED and i > _FIRST}

# Keys of which a job gives one.
MEMORY = ("mem", "mem_per_cpu", "mem_per_gpu")
CPUS = ("cpus_per_task", "cpus_per_gpu")
PROGRAMS = ("command", "ddp", "script")


def rivals(key: str) -> tuple[str, ...]:
    """The keys of which a job gives one, `key` among them."""
    return next((names for names in (MEMORY, CPUS) if key in names), (key,))


def written(key: str, value: str) -> str:
    """A key and its value, as YAML."""
    return f"{key}:{value}" if value.startswith("\n") else f"{key}: {value}"


def example(name: str) -> str:
    """The first example of a key with the keys that it needs, as YAML."""
    key = KEYS[name]
    return "\n".join(filter(None, (key.needs, written(name, key.examples[0]))))
