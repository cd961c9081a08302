"""Typer declarations and nothing else; `main.py` is the way in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from slurmgen import __version__
from slurmgen.cli import helptext, report
from slurmgen.cli.main import with_check_value
from slurmgen.errors import UsageError
from slurmgen.script import launchers


class _Help:
    """Help and usage in our own words: the same with every version of Typer, and in the manual."""

    def get_help(self, ctx: Any) -> str:
        return helptext.text(helptext.page(self, ctx.command_path), helptext.columns())

    def get_usage(self, ctx: Any) -> str:
        return f"Usage: {helptext.page(self, ctx.command_path).usage}"


class Verb(_Help, TyperCommand):
    """A command that does something."""


class Group(_Help, TyperGroup):
    """A command that has others below it."""


class RenderCommand(Verb):
    """`render`, whose --check may stand alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_check_value(args))


def _examples(*lines: str) -> str:
    """The end of a help text; two spaces or more stand before a remark."""
    return "\n".join(lines)


app = typer.Typer(
    cls=Group,
    help="One job.yaml in, one right sbatch script out, for PyTorch on Slurm.",
    epilog=_examples(
        "slurmgen init  start here",
        "slurmgen render job.yaml > job.sbatch",
        "slurmgen submit job.yaml",
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    # `completion` is a command of its own.
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
sandbox_app = typer.Typer(
    cls=Group,
    help="A throwaway real Slurm on this machine, with pretend GPUs.",
    epilog=_examples(
        'eval "$(slurmgen sandbox up --nodes 2 --gpus 4)"',
        "slurmgen submit --wait job.yaml",
        "slurmgen sandbox down",
    ),
    no_args_is_help=True,
)
app.add_typer(sandbox_app, name="sandbox")
cluster_app = typer.Typer(
    cls=Group,
    help="The profiles of clusters: which there are, and what they say.",
    epilog=_examples(
        "slurmgen cluster list",
        "slurmgen render job.yaml --cluster lumi",
        "slurmgen cluster detect > clusters/lab.yaml  your own",
    ),
    no_args_is_help=True,
)
app.add_typer(cluster_app, name="cluster")

template_app = typer.Typer(
    cls=Group,
    help="The templates that scripts are rendered from, and the project's own.",
    epilog=_examples(
        "slurmgen template list",
        "slurmgen template eject job --block commands",
    ),
    no_args_is_help=True,
)
app.add_typer(template_app, name="template")

# What a shell offers for a parameter follows from its metavar: see completion.py.
Job = Annotated[str, typer.Argument(metavar="JOB", help="The job file (- for stdin).")]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        "-c",
        metavar="CLUSTER",
        help="Cluster profile: a name or a file.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the job file."),
]
TemplateName = Annotated[
    str,
    typer.Argument(
        metavar="TEMPLATE",
        help="Its name, without .sbatch.j2: job.",
    ),
]
SandboxName = Annotated[str, typer.Option("--name", metavar="NAME", help="Which sandbox.")]
SandboxFolder = Annotated[
    Path | None, typer.Option("--dir", metavar="FOLDER", help="Where sandboxes live.")
]
SandboxSlurm = Annotated[
    str,
    typer.Option(
        "--slurm", metavar="20.11|22.05|24.11|26.05", help="Its version; this machine's by default."
    ),
]
Node = Annotated[str, typer.Argument(metavar="NODE", help="Its name, such as n1.")]
Member = Annotated[
    str, typer.Argument(metavar="NODE", help="Its name, such as n1; ctl: the controller.")
]
Other = Annotated[
    str | None, typer.Argument(metavar="NODE", help="Cut it off from this one alone.")
]


def tree() -> Any:
    """All commands, as completion and the manual read them."""
    return typer.main.get_command(app)


def _version(wanted: bool) -> None:
    if wanted:
        report.out(f"slurmgen {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command(
    cls=RenderCommand,
    epilog=_examples(
        "slurmgen render job.yaml > job.sbatch",
        "slurmgen render job.yaml -c lumi --set nodes=4",
        "slurmgen render --write jobs/          every script in git",
        "slurmgen render --check .              exit 1 and a diff where one has drifted",
    ),
)
def render(
    jobs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="JOB",
            help="Job files (- for stdin); with --check, folders.",
        ),
    ] = None,
    cluster: Cluster = None,
    set_: Set = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the script to this file."),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="[SCRIPT]",
            help="Compare with this file, or with the script beside each job file; exit 1 and a "
            "diff on drift.",
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the script beside each job file: job.sbatch.")
    ] = False,
) -> None:
    """Print the sbatch script of a job file."""
    overrides = set_ or ()
    if not write and check != "":
        from slurmgen.cli.commands import render as verb

        job = _one_job(jobs)
        raise typer.Exit(
            verb.run(job, cluster=cluster, overrides=overrides, output=output, check=check)
        )
    if output is not None or (write and check is not None):
        raise UsageError(
            "-o, --write and --check without a script exclude each other",
            fix="name the script: --check SCRIPT" if output else "drop one of them",
        )
    from slurmgen.cli.commands import scripts

    raise typer.Exit(scripts.run(jobs or ["."], write=write, cluster=cluster, overrides=overrides))


def _one_job(jobs: list[str] | None) -> str:
    if jobs is None or len(jobs) == 0:
        raise UsageError("no job file is named", fix="slurmgen render job.yaml")
    if len(jobs) > 1:
        raise UsageError(
            f"{len(jobs)} job files, and one script to print or compare",
            fix="--write or --check, which take the script beside each job file",
        )
    return jobs[0]


@app.command(
    cls=Verb,
    epilog=_examples(
        "slurmgen submit job.yaml",
        "slurmgen submit --wait job.yaml && echo done",
        "slurmgen submit --test-only job.yaml   when it would start",
    ),
)
def submit(
    job: Job,
    cluster: Cluster = None,
    set_: Set = None,
    test_only: Annotated[
        bool, typer.Option("--test-only", help="Ask Slurm, but submit nothing.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the job and exit with its code.")
    ] = False,
) -> None:
    """Render, hand to sbatch, print the job id."""
    from slurmgen.cli.commands import submit as verb

    raise typer.Exit(
        verb.run(job, cluster=cluster, overrides=set_ or (), test_only=test_only, wait=wait)
    )


@app.command(
    cls=Verb,
    epilog=_examples(
        "slurmgen run job.yaml",
        "slurmgen run --nproc 2 job.yaml",
    ),
)
def run(
    job: Job,
    cluster: Cluster = None,
    set_: Set = None,
    nproc: Annotated[
        int | None,
        typer.Option("--nproc", metavar="N", min=1, help="Ranks; if not those of one node."),
    ] = None,
) -> None:
    """Run the job on this machine, without Slurm."""
    from slurmgen.cli.commands import run as verb

    verb.run(job, cluster=cluster, overrides=set_ or (), nproc=nproc)


@app.command(
    cls=Verb,
    epilog=_examples(
        "slurmgen plan job.yaml",
        "slurmgen plan --svg plan.svg job.yaml",
    ),
)
def plan(
    job: Job,
    cluster: Cluster = None,
    set_: Set = None,
    svg: Annotated[
        str | None, typer.Option("--svg", metavar="FILE", help="Draw it (- for stdout).")
    ] = None,
) -> None:
    """Show which rank sits on which node and GPU, and what the job costs."""
    from slurmgen.cli.commands import plan as verb

    raise typer.Exit(verb.run(job, cluster=cluster, overrides=set_ or (), svg=svg))


@app.command(
    cls=Verb,
    epilog=_examples(
        "slurmgen rehearse job.yaml",
        "slurmgen rehearse train.sbatch         any script, not only ours",
        "slurmgen rehearse --svg picture.svg job.yaml",
    ),
)
def rehearse(
    job: Annotated[
        str, typer.Argument(metavar="FILE", help="A job file, or a batch script of any kind.")
    ],
    cluster: Cluster = None,
    set_: Set = None,
    format_: Annotated[
        str, typer.Option("--format", metavar="text|json", help="How to report.")
    ] = "text",
    svg: Annotated[
        str | None, typer.Option("--svg", metavar="FILE", help="Draw what ran (- for stdout).")
    ] = None,
    real: Annotated[
        bool, typer.Option("--real", help="Run the programs themselves, on this machine's CPUs.")
    ] = False,
    limit: Annotated[
        float,
        typer.Option(
            "--limit",
            metavar="SECONDS",
            min=1,
            help="End a job that is silent, or with --real runs, for so long; any other after ten "
            "times that.",
        ),
    ] = 30,
    slurm: SandboxSlurm = "",
) -> None:
    """Run the job on a Slurm of its shape here, with stand-ins for its programs.

    Python, launchers and containers are stood for, as is what reaches other machines (curl, git
    push, ssh). All else in the script runs for real, apart: its processes end with it, there is no
    network, and files are copies that go away. With --real programs, files and network are real.
    """
    from slurmgen.cli.commands import rehearse as verb

    raise typer.Exit(
        verb.run(
            job,
            cluster=cluster,
            overrides=set_ or (),
            format_=format_,
            svg=svg,
            real=real,
            limit=limit,
            slurm=slurm,
        )
    )


@app.command(
    cls=Verb,
    epilog=_examples(
        "slurmgen check job.yaml",
        "slurmgen check --cluster perlmutter job.yaml",
        "slurmgen check train.sbatch            a script of your own",
    ),
)
def check(
    job: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="The job file (- for stdin), or a batch script.",
        ),
    ],
    cluster: Cluster = None,
    set_: Set = None,
    format_: Annotated[
        str, typer.Option("--format", metavar="text|json|github|sarif", help="How to report.")
    ] = "text",
) -> None:
    """Say what lint, the profile and the cluster itself have against a job."""
    from slurmgen.cli.commands import check as verb

    raise typer.Exit(verb.run(job, cluster=cluster, overrides=set_ or (), format_=format_))


@app.command(
    cls=Verb,
    epilog=_examples(
        "slurmgen lint train.sbatch",
        "slurmgen lint --diff scripts/          what --fix would change",
        "slurmgen lint --explain SG110",
    ),
)
def lint(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Scripts, job files, folders; - for stdin."),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", metavar="text|json|github|sarif", help="How to report.")
    ] = "text",
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="RULE",
            help="Print what a rule is about (all: a list).",
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="RULE,...",
            help="Ask these rules only: SG301, SG3, name.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="RULE,...",
            help="Leave these rules out.",
        ),
    ] = None,
    severity: Annotated[
        str, typer.Option("--severity", metavar="error|warning", help="Show nothing below this.")
    ] = "warning",
    slurm: Annotated[
        str | None, typer.Option("--slurm", metavar="VERSION", help="Slurm there, say 22.05.")
    ] = None,
    cluster: Cluster = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what can be mended, and report the rest.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what --fix would change; change nothing.")
    ] = False,
) -> None:
    """Say what is wrong with batch scripts, and with the programs they start."""
    from slurmgen.cli.commands import lint as verb

    raise typer.Exit(
        verb.run(
            files or (),
            format_=format_,
            explain=explain,
            select=select or (),
            ignore=ignore or (),
            severity=severity,
            slurm=slurm,
            cluster=cluster,
            fix=fix,
            diff=diff,
        )
    )


@app.command(
    "import",
    cls=Verb,
    epilog=_examples(
        "slurmgen import train.sbatch > job.yaml",
        "slurmgen import --fix train.sbatch",
    ),
)
def import_(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A batch script (- for stdin).")],
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what lint can mend, then import.")
    ] = False,
) -> None:
    """Print the job file of a batch script."""
    from slurmgen.cli.commands import import_script as verb

    raise typer.Exit(verb.run(script, fix=fix))


Format = Annotated[str, typer.Option("--format", metavar="text|json", help="How to print.")]


@cluster_app.command(
    "list",
    cls=Verb,
    epilog=_examples("slurmgen cluster list", "slurmgen cluster list --format json"),
)
def cluster_list(format_: Format = "text") -> None:
    """List the profiles; the cluster that this is, where one can know it, is marked."""
    from slurmgen.cli.commands import cluster as verb

    raise typer.Exit(verb.list_all(format_=format_))


@cluster_app.command(
    "show",
    cls=Verb,
    epilog=_examples("slurmgen cluster show frontier", "slurmgen cluster show clusters/lab.yaml"),
)
def cluster_show(
    name: Annotated[str, typer.Argument(metavar="CLUSTER", help="A profile: a name or a file.")],
    format_: Format = "text",
) -> None:
    """Say what a profile knows, and from which documents."""
    from slurmgen.cli.commands import cluster as verb

    raise typer.Exit(verb.show(name, format_=format_))


@cluster_app.command(
    "detect", cls=Verb, epilog=_examples("slurmgen cluster detect > clusters/lab.yaml")
)
def cluster_detect(format_: Format = "text") -> None:
    """Print the profile that the Slurm of this machine makes."""
    from slurmgen.cli.commands import cluster as verb

    raise typer.Exit(verb.detect_live(format_=format_))


@cluster_app.command(
    "diff",
    cls=Verb,
    epilog=_examples("slurmgen cluster diff lab", "slurmgen cluster diff lab --format json"),
)
def cluster_diff(
    name: Annotated[str, typer.Argument(metavar="CLUSTER", help="A profile: a name or a file.")],
    format_: Format = "text",
) -> None:
    """Say where a profile and the Slurm of this machine have drifted apart."""
    from slurmgen.cli.commands import cluster as verb

    raise typer.Exit(verb.diff(name, format_=format_))


@template_app.command("list", cls=Verb, epilog=_examples("slurmgen template list"))
def template_list() -> None:
    """List the templates: built-in and the project's own, and what each changes."""
    from slurmgen.cli.commands import template as verb

    raise typer.Exit(verb.list_())


@template_app.command(
    "show",
    cls=Verb,
    epilog=_examples(
        "slurmgen template show job", "slurmgen template show --diff job  after an upgrade"
    ),
)
def template_show(
    name: TemplateName,
    diff: Annotated[
        bool, typer.Option("--diff", help="What the built-in one has got since it was ejected.")
    ] = False,
) -> None:
    """Print a template: the project's own, else the built-in one."""
    from slurmgen.cli.commands import template as verb

    raise typer.Exit(verb.show(name, diff=diff))


@template_app.command(
    "eject",
    cls=Verb,
    epilog=_examples(
        "slurmgen template eject job --block commands",
        "slurmgen template eject --merged job",
    ),
)
def template_eject(
    name: TemplateName,
    block: Annotated[
        str | None, typer.Option("--block", metavar="BLOCK", help="This block alone.")
    ] = None,
    merged: Annotated[
        bool,
        typer.Option(
            "--merged", help="What the built-in one has got since is in: change the stamp only."
        ),
    ] = False,
) -> None:
    """Copy a built-in template, or a block of it, into the project's templates/."""
    from slurmgen.cli.commands import template as verb

    raise typer.Exit(verb.eject(name, block=block, merged=merged))


@app.command(
    cls=Verb,
    epilog=_examples(
        "slurmgen init",
        "slurmgen init --program train.py --launcher torchrun --yes",
        "slurmgen init --from old.sbatch",
    ),
)
def init(
    folder: Annotated[str, typer.Argument(metavar="[FOLDER]", help="The project.")] = ".",
    cluster: Cluster = None,
    launcher: Annotated[
        str | None,
        typer.Option("--launcher", metavar="|".join(launchers.NAMES), help="Who starts ranks."),
    ] = None,
    program: Annotated[
        str | None, typer.Option("--program", metavar="COMMAND", help="What each rank runs.")
    ] = None,
    script: Annotated[
        str | None, typer.Option("--from", metavar="SCRIPT", help="Import this batch script.")
    ] = None,
    templates: Annotated[
        bool, typer.Option("--templates", help="Also a template of the project's own.")
    ] = False,
    hooks: Annotated[bool, typer.Option(help="An entry for pre-commit.")] = True,
    ci: Annotated[bool, typer.Option(help="A workflow for GitHub Actions.")] = True,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
) -> None:
    """Start a project: a job file, its script, and checks that keep them together."""
    from slurmgen.cli.commands import init as verb

    answers = verb.Answers(cluster, launcher, program, script, templates, hooks, ci)
    raise typer.Exit(verb.run(folder, answers, None if yes else _asker()))


def _asker() -> Callable[[str, str, tuple[str, ...]], str] | None:
    """What asks a person; None where there is none."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        return None

    def ask(question: str, usual: str, choices: tuple[str, ...]) -> str:
        shown = f"{question} ({', '.join(choices)})" if choices else question
        while True:
            try:
                answer = str(typer.prompt(shown, default=usual, err=True)).strip()
            except typer.Abort:
                raise KeyboardInterrupt from None
            if not choices or answer in choices:
                return answer
            report.note(f"slurmgen: {answer} is none of them")

    return ask


@app.command(
    cls=Verb,
    epilog=_examples(
        "slurmgen schema > job.schema.json",
        "slurmgen schema cluster",
    ),
)
def schema(
    kind: Annotated[
        str, typer.Argument(metavar="[job|cluster]", help="What the schema is of.")
    ] = "job",
) -> None:
    """Print the JSON Schema of a job file or a cluster profile, for editors."""
    from slurmgen.cli.commands import schema as verb

    raise typer.Exit(verb.run(kind))


@app.command(
    cls=Verb,
    epilog=_examples(
        "slurmgen completion --install  for the shell that $SHELL names",
        'eval "$(slurmgen completion bash)"',
        "slurmgen completion fish > ~/.config/fish/completions/slurmgen.fish",
    ),
)
def completion(
    shell: Annotated[
        str | None, typer.Argument(metavar="[bash|zsh|fish]", help="If not that of $SHELL.")
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Set it up for you, in your home folder.")
    ] = False,
) -> None:
    """Print what makes a shell complete slurmgen's commands, options and values."""
    from slurmgen.cli.commands import completion as verb

    raise typer.Exit(verb.run(shell, install=install))


@sandbox_app.command(
    "up",
    cls=Verb,
    epilog=_examples(
        'eval "$(slurmgen sandbox up --nodes 2 --gpus 4)"',
        "slurmgen sandbox up --like lumi",
        "slurmgen sandbox up --netns --grace 60",
    ),
)
def sandbox_up(
    name: SandboxName = "default",
    like: Annotated[
        str | None,
        typer.Option(metavar="CLUSTER", help="Partitions, limits and nodes of this profile."),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Nodes (2), with --like of each kind at most (4)."),
    ] = None,
    gpus: Annotated[int, typer.Option(metavar="N", help="Pretend GPUs per node.")] = 4,
    gpu_type: Annotated[str, typer.Option(metavar="TYPE", help="Their type.")] = "a100",
    cpus: Annotated[int, typer.Option(metavar="N", help="Pretend CPUs per node.")] = 64,
    memory: Annotated[int, typer.Option(metavar="MIB", help="Memory per node.")] = 262_144,
    partition: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A partition (gpu); again for another.")
    ] = None,
    grace: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            help="Let sandbox preempt take nodes from jobs, told so long before.",
        ),
    ] = None,
    netns: Annotated[
        bool, typer.Option("--netns", help="A network of its own for each node; takes root.")
    ] = False,
    accounting: Annotated[
        bool, typer.Option("--accounting", help="With slurmdbd and MariaDB: sacct works.")
    ] = False,
    slurm: SandboxSlurm = "",
    directory: SandboxFolder = None,
) -> None:
    """Start a sandbox; prints the line that makes a shell use it."""
    from slurmgen.cli.commands import sandbox as verb

    raise typer.Exit(
        verb.up(
            name=name,
            like=like,
            nodes=nodes,
            gpus_per_node=gpus,
            gpu_type=gpu_type,
            cpus_per_node=cpus,
            memory_mb=memory,
            partitions=tuple(partition or ("gpu",)),
            grace_seconds=grace,
            netns=netns,
            accounting=accounting,
            slurm=slurm,
            directory=directory,
        )
    )


@sandbox_app.command(
    "down",
    cls=Verb,
    epilog=_examples("slurmgen sandbox down", "slurmgen sandbox down --name other"),
)
def sandbox_down(name: SandboxName = "default", directory: SandboxFolder = None) -> None:
    """Stop a sandbox, its jobs included, and delete its folder."""
    from slurmgen.cli.commands import sandbox as verb

    raise typer.Exit(verb.down(name=name, directory=directory))


@sandbox_app.command("status", cls=Verb, epilog=_examples("slurmgen sandbox status"))
def sandbox_status(directory: SandboxFolder = None) -> None:
    """List the sandboxes of this user."""
    from slurmgen.cli.commands import sandbox as verb

    raise typer.Exit(verb.status(directory=directory))


# Whatever stands behind the command's name is its own.
@sandbox_app.command(
    "exec",
    cls=Verb,
    epilog=_examples(
        "slurmgen sandbox exec squeue --me", "slurmgen sandbox exec --name other sinfo"
    ),
    context_settings={"allow_interspersed_args": False},
)
def sandbox_exec(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="A program and what it is given.")
    ],
    name: SandboxName = "default",
    directory: SandboxFolder = None,
) -> None:
    """Run a command against a sandbox."""
    from slurmgen.cli.commands import sandbox as verb

    raise typer.Exit(verb.execute(command, name=name, directory=directory))


@sandbox_app.command(
    "cut",
    cls=Verb,
    epilog=_examples("slurmgen sandbox cut n1 n2", "slurmgen sandbox cut n1  its whole link"),
)
def sandbox_cut(
    node: Member,
    other: Other = None,
    name: SandboxName = "default",
    directory: SandboxFolder = None,
) -> None:
    """Cut a node's link, or that between two, without a word to either side (--netns)."""
    from slurmgen.cli.commands import sandbox as verb

    raise typer.Exit(verb.cut(node, other, name=name, directory=directory))


@sandbox_app.command("mend", cls=Verb, epilog=_examples("slurmgen sandbox mend n1"))
def sandbox_mend(
    node: Member,
    other: Other = None,
    name: SandboxName = "default",
    directory: SandboxFolder = None,
) -> None:
    """Undo cut; of one node, every cut that it is part of."""
    from slurmgen.cli.commands import sandbox as verb

    raise typer.Exit(verb.mend(node, other, name=name, directory=directory))


@sandbox_app.command(
    "kill",
    cls=Verb,
    epilog=_examples("slurmgen sandbox kill n2", "slurmgen sandbox kill --slurmd-only n2"),
)
def sandbox_kill(
    node: Node,
    slurmd_only: Annotated[bool, typer.Option("--slurmd-only", help="Its steps live on.")] = False,
    name: SandboxName = "default",
    directory: SandboxFolder = None,
) -> None:
    """End all that runs on a node at once, as if its power had failed."""
    from slurmgen.cli.commands import sandbox as verb

    raise typer.Exit(verb.kill(node, slurmd_only=slurmd_only, name=name, directory=directory))


@sandbox_app.command("revive", cls=Verb, epilog=_examples("slurmgen sandbox revive n2"))
def sandbox_revive(
    node: Node, name: SandboxName = "default", directory: SandboxFolder = None
) -> None:
    """Start a node again that was killed."""
    from slurmgen.cli.commands import sandbox as verb

    raise typer.Exit(verb.revive(node, name=name, directory=directory))


@sandbox_app.command("preempt", cls=Verb, epilog=_examples("slurmgen sandbox preempt 17"))
def sandbox_preempt(
    job: Annotated[str, typer.Argument(metavar="ID", help="The id of a job that runs.")],
    name: SandboxName = "default",
    directory: SandboxFolder = None,
) -> None:
    """Have Slurm preempt a job (up --grace SECONDS)."""
    from slurmgen.cli.commands import sandbox as verb

    raise typer.Exit(verb.preempt(job, name=name, directory=directory))
