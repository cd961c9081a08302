"""The verbs: what each is called and takes, said once.

The parser, the fast way in, `--help`, the manual and completion are all read from this table.
A verb's values are handed to its function by name: `render.run` is `run` of
`slurmgen/cli/commands/render.py`, which returns the exit status.

What a shell offers for a value follows from its metavar (see completion.py), which people see in
the help too.
"""

# No `from __future__ import annotations`: a NamedTuple would compile each of them, and `slurmgen
# render` would wait for it.
from pathlib import Path
from typing import Any, NamedTuple

from slurmgen.cli.report import FORMATS

REQUIRED = object()
"""The default of an argument that must be given."""


class Argument(NamedTuple):
    """A word by its position. many: all that follow, as a tuple."""

    name: str
    metavar: str
    help: str
    default: Any = REQUIRED
    many: bool = False


class Option(NamedTuple):
    """flags: `--long`, `-l`. metavar: what it takes; without one it takes nothing and is False or
    True, and `off` is the flag that says False. many: again for another, as a tuple.
    """

    name: str
    flags: tuple[str, ...]
    help: str
    metavar: str = ""
    default: Any = None
    type: type = str
    least: int | None = None
    many: bool = False
    off: str = ""

    @property
    def is_flag(self) -> bool:
        return not self.metavar


class Verb(NamedTuple):
    """examples: two spaces or more stand before a remark. verbs: those below it, instead of a
    function. more: what the help says behind the summary. quick: it runs where every import
    counts. rest_is_its_own: options end at the first argument.
    """

    name: str
    summary: str
    examples: tuple[str, ...]
    function: str = ""
    parameters: tuple[Argument | Option, ...] = ()
    verbs: tuple["Verb", ...] = ()
    more: str = ""
    quick: bool = False
    rest_is_its_own: bool = False

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return tuple(p for p in self.parameters if isinstance(p, Argument))

    @property
    def options(self) -> tuple[Option, ...]:
        return tuple(p for p in self.parameters if isinstance(p, Option))

    def below(self, name: str) -> "Verb | None":
        return next((verb for verb in self.verbs if verb.name == name), None)

    def run(self, values: dict[str, Any]) -> int:
        """Call its function; returns the exit status."""
        from importlib import import_module

        module, _, function = self.function.partition(".")
        run = getattr(import_module(f"slurmgen.cli.commands.{module}"), function)
        return int(run(**values) or 0)


# --- what several verbs take -------------------------------------------------------------------

JOB = Argument("job", "JOB", "The job file (- for stdin).")
CLUSTER = Option("cluster", ("--cluster", "-c"), "Cluster profile: a name or a file.", "CLUSTER")
SET = Option("overrides", ("--set",), "Override a key of the job file.", "KEY=VALUE", many=True)
REPORT = Option("format_", ("--format",), "How to report.", "|".join(FORMATS), "text")
PRINT = Option("format_", ("--format",), "How to print.", "text|json", "text")
PROFILE = Argument("name", "CLUSTER", "A profile: a name or a file.")
TEMPLATE = Argument("name", "TEMPLATE", "Its name, without .sbatch.j2: job.")
NODE = Argument("node", "NODE", "Its name, such as n1.")
MEMBER = NODE._replace(name="one", help="Its name, such as n1; ctl: the controller.")
OTHER = Argument("other", "NODE", "Cut it off from this one alone.", None)
SANDBOX = Option("name", ("--name",), "Which sandbox.", "NAME", "default")
FOLDER = Option("directory", ("--dir",), "Where sandboxes live.", "FOLDER", type=Path)
SLURM = Option(
    "slurm",
    ("--slurm",),
    "Its version; this machine's by default.",
    "20.11|22.05|24.11|26.05",
    "",
)

VERSION = Option("version", ("--version",), "Show the version.")

# --- the verbs, in the order of the help -------------------------------------------------------

RENDER = Verb(
    "render",
    "Print the sbatch script of a job file.",
    (
        "slurmgen render job.yaml > job.sbatch",
        "slurmgen render job.yaml -c lumi --set nodes=4",
        "slurmgen render --write jobs/          every script in git",
        "slurmgen render --check .              exit 1 and a diff where one has drifted",
    ),
    "render.run",
    (
        Argument("jobs", "JOB", "Job files (- for stdin); with --check, folders.", (), many=True),
        CLUSTER,
        SET,
        Option("output", ("--output", "-o"), "Write the script to this file.", "FILE"),
        Option(
            "check",
            ("--check",),
            "Compare with this file, or with the script beside each job file; exit 1 and a diff "
            "on drift.",
            "[SCRIPT]",
        ),
        Option("write", ("--write",), "Write the script beside each job file: job.sbatch."),
    ),
    quick=True,
)
SUBMIT = Verb(
    "submit",
    "Render, hand to sbatch, print the job id.",
    (
        "slurmgen submit job.yaml",
        "slurmgen submit --wait job.yaml && echo done",
        "slurmgen submit --test-only job.yaml   when it would start",
    ),
    "submit.run",
    (
        JOB,
        CLUSTER,
        SET,
        Option("test_only", ("--test-only",), "Ask Slurm, but submit nothing."),
        Option("wait", ("--wait",), "Wait for the job and exit with its code."),
    ),
)
RUN = Verb(
    "run",
    "Run the job on this machine, without Slurm.",
    ("slurmgen run job.yaml", "slurmgen run --nproc 2 job.yaml"),
    "run.run",
    (
        JOB,
        CLUSTER,
        SET,
        Option("nproc", ("--nproc",), "Ranks; if not those of one node.", "N", type=int, least=1),
    ),
)
PLAN = Verb(
    "plan",
    "Show which rank sits on which node and GPU, and what the job costs.",
    ("slurmgen plan job.yaml", "slurmgen plan --svg plan.svg job.yaml"),
    "plan.run",
    (JOB, CLUSTER, SET, Option("svg", ("--svg",), "Draw it (- for stdout).", "FILE")),
)
REHEARSE = Verb(
    "rehearse",
    "Run the job on a Slurm of its shape here, with stand-ins for its programs.",
    (
        "slurmgen rehearse job.yaml",
        "slurmgen rehearse train.sbatch         any script, not only ours",
        "slurmgen rehearse --svg picture.svg job.yaml",
    ),
    "rehearse.run",
    (
        Argument("job", "FILE", "A job file, or a batch script of any kind."),
        CLUSTER,
        SET,
        REPORT._replace(metavar="text|json"),
        Option("svg", ("--svg",), "Draw what ran (- for stdout).", "FILE"),
        Option("real", ("--real",), "Run the programs themselves, on this machine's CPUs."),
        Option(
            "limit",
            ("--limit",),
            "End a job that is silent, or with --real runs, for so long; any other after ten times "
            "that.",
            "SECONDS",
            30,
            float,
            least=1,
        ),
        SLURM,
    ),
    more="Python, launchers and containers are stood for, as is what reaches other machines (curl, "
    "git push, ssh). All else in the script runs for real, apart: its processes end with it, there "
    "is no network, and files are copies that go away. With --real programs, files and network are "
    "real.",
)
CHECK = Verb(
    "check",
    "Say what lint, the profile and the cluster itself have against a job.",
    (
        "slurmgen check job.yaml",
        "slurmgen check --cluster perlmutter job.yaml",
        "slurmgen check train.sbatch            a script of your own",
    ),
    "check.run",
    (
        Argument("job", "FILE", "The job file (- for stdin), or a batch script."),
        CLUSTER,
        SET,
        REPORT,
    ),
)
LINT = Verb(
    "lint",
    "Say what is wrong with batch scripts, and with the programs they start.",
    (
        "slurmgen lint train.sbatch",
        "slurmgen lint --diff scripts/          what --fix would change",
        "slurmgen lint --explain SG110",
    ),
    "lint.run",
    (
        Argument("files", "FILE...", "Scripts, job files, folders; - for stdin.", (), many=True),
        REPORT,
        Option("explain", ("--explain",), "Print what a rule is about (all: a list).", "RULE"),
        Option(
            "select",
            ("--select",),
            "Ask these rules only: SG301, SG3, name.",
            "RULE,...",
            many=True,
        ),
        Option("ignore", ("--ignore",), "Leave these rules out.", "RULE,...", many=True),
        Option("severity", ("--severity",), "Show nothing below this.", "error|warning", "warning"),
        Option("slurm", ("--slurm",), "Slurm there, say 22.05.", "VERSION"),
        CLUSTER,
        Option("fix", ("--fix",), "Mend what can be mended, and report the rest."),
        Option("diff", ("--diff",), "Show what --fix would change; change nothing."),
    ),
    quick=True,
)
IMPORT = Verb(
    "import",
    "Print the job file of a batch script.",
    ("slurmgen import train.sbatch > job.yaml", "slurmgen import --fix train.sbatch"),
    "import_script.run",
    (
        Argument("script", "SCRIPT", "A batch script (- for stdin)."),
        Option("fix", ("--fix",), "Mend what lint can mend, then import."),
    ),
)
INIT = Verb(
    "init",
    "Start a project: a job file, its script, and checks that keep them together.",
    (
        "slurmgen init",
        "slurmgen init --program train.py --launcher torchrun --yes",
        "slurmgen init --from old.sbatch",
    ),
    "init.start",
    (
        Argument("folder", "[FOLDER]", "The project.", "."),
        CLUSTER,
        Option("launcher", ("--launcher",), "Who starts ranks.", "srun|torchrun|spawn|plain"),
        Option("program", ("--program",), "What each rank runs.", "COMMAND"),
        Option("script", ("--from",), "Import this batch script.", "SCRIPT"),
        Option("templates", ("--templates",), "Also a template of the project's own."),
        Option("hooks", ("--hooks",), "An entry for pre-commit.", default=True, off="--no-hooks"),
        Option("ci", ("--ci",), "A workflow for GitHub Actions.", default=True, off="--no-ci"),
        Option("yes", ("--yes", "-y"), "Ask nothing."),
    ),
)
SCHEMA = Verb(
    "schema",
    "Print the JSON Schema of a job file or a cluster profile, for editors.",
    ("slurmgen schema > job.schema.json", "slurmgen schema cluster"),
    "schema.run",
    (Argument("kind", "[job|cluster]", "What the schema is of.", "job"),),
)
COMPLETION = Verb(
    "completion",
    "Print what makes a shell complete slurmgen's commands, options and values.",
    (
        "slurmgen completion --install  for the shell that $SHELL names",
        'eval "$(slurmgen completion bash)"',
        "slurmgen completion fish > ~/.config/fish/completions/slurmgen.fish",
    ),
    "completion.run",
    (
        Argument("shell", "[bash|zsh|fish]", "If not that of $SHELL.", None),
        Option("install", ("--install",), "Set it up for you, in your home folder."),
    ),
)
SANDBOXES = Verb(
    "sandbox",
    "A throwaway real Slurm on this machine, with pretend GPUs.",
    (
        'eval "$(slurmgen sandbox up --nodes 2 --gpus 4)"',
        "slurmgen submit --wait job.yaml",
        "slurmgen sandbox down",
    ),
    verbs=(
        Verb(
            "up",
            "Start a sandbox; prints the line that makes a shell use it.",
            (
                'eval "$(slurmgen sandbox up --nodes 2 --gpus 4)"',
                "slurmgen sandbox up --like lumi",
                "slurmgen sandbox up --netns --grace 60",
            ),
            "sandbox.up",
            (
                SANDBOX,
                Option(
                    "like", ("--like",), "Partitions, limits and nodes of this profile.", "CLUSTER"
                ),
                Option(
                    "nodes",
                    ("--nodes",),
                    "Nodes (2), with --like of each kind at most (4).",
                    "N",
                    type=int,
                ),
                Option("gpus_per_node", ("--gpus",), "Pretend GPUs per node.", "N", 4, int),
                Option("gpu_type", ("--gpu-type",), "Their type.", "TYPE", "a100"),
                Option("cpus_per_node", ("--cpus",), "Pretend CPUs per node.", "N", 64, int),
                Option("memory_mb", ("--memory",), "Memory per node.", "MIB", 262_144, int),
                Option(
                    "partitions",
                    ("--partition",),
                    "A partition (gpu); again for another.",
                    "NAME",
                    many=True,
                ),
                Option(
                    "grace_seconds",
                    ("--grace",),
                    "Let sandbox preempt take nodes from jobs, told so long before.",
                    "SECONDS",
                    type=int,
                ),
                Option("netns", ("--netns",), "A network of its own for each node; takes root."),
                Option("accounting", ("--accounting",), "With slurmdbd and MariaDB: sacct works."),
                SLURM,
                FOLDER,
            ),
        ),
        Verb(
            "down",
            "Stop a sandbox, its jobs included, and delete its folder.",
            ("slurmgen sandbox down", "slurmgen sandbox down --name other"),
            "sandbox.down",
            (SANDBOX, FOLDER),
        ),
        Verb(
            "status",
            "List the sandboxes of this user.",
            ("slurmgen sandbox status",),
            "sandbox.status",
            (FOLDER,),
        ),
        Verb(
            "exec",
            "Run a command against a sandbox.",
            ("slurmgen sandbox exec squeue --me", "slurmgen sandbox exec --name other sinfo"),
            "sandbox.execute",
            (
                Argument("argv", "COMMAND...", "A program and what it is given.", many=True),
                SANDBOX,
                FOLDER,
            ),
            rest_is_its_own=True,
        ),
        Verb(
            "cut",
            "Cut a node's link, or that between two, without a word to either side (--netns).",
            ("slurmgen sandbox cut n1 n2", "slurmgen sandbox cut n1  its whole link"),
            "sandbox.cut",
            (MEMBER, OTHER, SANDBOX, FOLDER),
        ),
        Verb(
            "mend",
            "Undo cut; of one node, every cut that it is part of.",
            ("slurmgen sandbox mend n1",),
            "sandbox.mend",
            (MEMBER, OTHER, SANDBOX, FOLDER),
        ),
        Verb(
            "kill",
            "End all that runs on a node at once, as if its power had failed.",
            ("slurmgen sandbox kill n2", "slurmgen sandbox kill --slurmd-only n2"),
            "sandbox.kill",
            (
                NODE,
                Option("slurmd_only", ("--slurmd-only",), "Its steps live on."),
                SANDBOX,
                FOLDER,
            ),
        ),
        Verb(
            "revive",
            "Start a node again that was killed.",
            ("slurmgen sandbox revive n2",),
            "sandbox.revive",
            (NODE, SANDBOX, FOLDER),
        ),
        Verb(
            "preempt",
            "Have Slurm preempt a job (up --grace SECONDS).",
            ("slurmgen sandbox preempt 17",),
            "sandbox.preempt",
            (Argument("job", "ID", "The id of a job that runs."), SANDBOX, FOLDER),
        ),
    ),
)
CLUSTERS = Verb(
    "cluster",
    "The profiles of clusters: which there are, and what they say.",
    (
        "slurmgen cluster list",
        "slurmgen render job.yaml --cluster lumi",
        "slurmgen cluster detect > clusters/lab.yaml  your own",
    ),
    verbs=(
        Verb(
            "list",
            "List the profiles; the cluster that this is, where one can know it, is marked.",
            ("slurmgen cluster list", "slurmgen cluster list --format json"),
            "cluster.list_all",
            (PRINT,),
        ),
        Verb(
            "show",
            "Say what a profile knows, and from which documents.",
            ("slurmgen cluster show frontier", "slurmgen cluster show clusters/lab.yaml"),
            "cluster.show",
            (PROFILE, PRINT),
        ),
        Verb(
            "detect",
            "Print the profile that the Slurm of this machine makes.",
            ("slurmgen cluster detect > clusters/lab.yaml",),
            "cluster.detect_live",
            (PRINT,),
        ),
        Verb(
            "diff",
            "Say where a profile and the Slurm of this machine have drifted apart.",
            ("slurmgen cluster diff lab", "slurmgen cluster diff lab --format json"),
            "cluster.diff",
            (PROFILE, PRINT),
        ),
    ),
)
TEMPLATES = Verb(
    "template",
    "The templates that scripts are rendered from, and the project's own.",
    ("slurmgen template list", "slurmgen template eject job --block commands"),
    verbs=(
        Verb(
            "list",
            "List the templates: built-in and the project's own, and what each changes.",
            ("slurmgen template list",),
            "template.list_",
        ),
        Verb(
            "show",
            "Print a template: the project's own, else the built-in one.",
            (
                "slurmgen template show job",
                "slurmgen template show --diff job  after an upgrade",
            ),
            "template.show",
            (
                TEMPLATE,
                Option("diff", ("--diff",), "What the built-in one has got since it was ejected."),
            ),
        ),
        Verb(
            "eject",
            "Copy a built-in template, or a block of it, into the project's templates/.",
            (
                "slurmgen template eject job --block commands",
                "slurmgen template eject --merged job",
            ),
            "template.eject",
            (
                TEMPLATE,
                Option("block", ("--block",), "This block alone.", "BLOCK"),
                Option(
                    "merged",
                    ("--merged",),
                    "What the built-in one has got since is in: change the stamp only.",
                ),
            ),
        ),
    ),
)
ALL = Verb(
    "slurmgen",
    "One job.yaml in, one right sbatch script out, for PyTorch on Slurm.",
    (
        "slurmgen init  start here",
        "slurmgen render job.yaml > job.sbatch",
        "slurmgen submit job.yaml",
    ),
    parameters=(VERSION,),
    verbs=(
        *(RENDER, SUBMIT, RUN, PLAN, REHEARSE, CHECK, LINT, IMPORT, INIT, SCHEMA, COMPLETION),
        *(SANDBOXES, CLUSTERS, TEMPLATES),
    ),
)
"""The program itself: all verbs are below it."""


def called(words: list[str]) -> tuple[Verb, list[str]]:
    """The verb that the first words name, and the words that are left for it."""
    verb = ALL
    for index, word in enumerate(words):
        below = verb.below(word)
        if below is None:
            return verb, words[index:]
        verb = below
    return verb, []
