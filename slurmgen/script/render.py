"""JobPlan -> text, through Jinja2. Here everything is quoted for where it stands.

Templates lay out and don't compute: each value they print is already a Bash word, a
complete directive or a line of text when it reaches them. What a template does wrong is said by
`template_errors`, and what it reads is told by `template_reads`; nothing else knows of Jinja2.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

import jinja2

from slurmgen import __version__, launchers
from slurmgen.errors import InvalidInput, Refusal
from slurmgen.resources import templates_dir
from slurmgen.slurm.quoting import bash_expandable, bash_word, directive_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slurmgen.jobfile.keys import Directive
    from slurmgen.jobfile.setup import Container
    from slurmgen.script.plan import JobPlan

# sbatch refuses a larger script (SchedulerParameters=max_script_size, 4 MiB by default).
MAX_SCRIPT_BYTES = 4 * 1024 * 1024
# Lines of the srun command are broken before this column where a word allows it.
_WIDTH = 96
_SUFFIX = ".sbatch.j2"
# Below the kernel's ephemeral ports (32768 on).
_PORT_FIRST, _PORT_COUNT = 12_000, 17_000


def render(plan: JobPlan, *, templates: Path | None = None) -> str:
    """The sbatch script of `plan`, byte for byte the same for the same plan.

    templates: the project's own folder of templates, which come before the built-in
    ones of the same name and may extend them as `slurmgen/NAME.sbatch.j2`.
    Raises InvalidInput for a template that is missing or wrong, and for `vars` that none
    reads; Refusal where a value has no form in the script.
    """
    environment = _environment(str(templates) if templates else None)
    names = context(plan)
    if plan.vars or templates is not None:
        from slurmgen.jobfile.variables import Variables

        names["vars"] = Variables(dict(plan.vars))
    try:
        text = environment.get_template(plan.template + _SUFFIX).render(names)
    except Exception as error:
        # Whatever a project's template computes can go wrong; the built-in ones compute nothing.
        if templates is None and not isinstance(error, jinja2.TemplateError):
            raise
        from slurmgen.script.templates.errors import explain

        raise InvalidInput([explain(error, plan.template + _SUFFIX, names, environment)]) from error
    if plan.vars:
        from slurmgen.script.templates.reads import check_all_read

        check_all_read(plan, plan.template + _SUFFIX, environment)
    check_size(text)
    return text


def check_size(text: str) -> None:
    """Raises Refusal for a script that is too long for sbatch."""
    if len(text) >= MAX_SCRIPT_BYTES // 4 and len(text.encode()) >= MAX_SCRIPT_BYTES:
        raise Refusal(
            f"the script is {len(text.encode()):,} bytes long",
            why="sbatch refuses scripts of 4 MiB and more",
            fix="put long texts in files and pass their paths",
        )


@cache
def _environment(templates: str | None) -> jinja2.Environment:
    builtin = jinja2.FileSystemLoader(str(templates_dir()))
    options: dict[str, Any] = {
        "undefined": jinja2.StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
        "keep_trailing_newline": True,
        "auto_reload": False,
        "autoescape": False,
    }
    prefixed = jinja2.PrefixLoader({"slurmgen": builtin})
    if templates is None:
        return jinja2.Environment(loader=jinja2.ChoiceLoader([prefixed, builtin]), **options)
    # A project's template may come from anybody's repository: it lays out text, and can
    # reach nothing of Python.
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    from slurmgen.jobfile.variables import printed

    own = _ProjectLoader(templates)
    loader = jinja2.ChoiceLoader([prefixed, own, builtin])
    return ImmutableSandboxedEnvironment(loader=loader, finalize=printed, **options)


class _ProjectLoader(jinja2.FileSystemLoader):
    """A project's own templates, without links that lead out of it, say to a person's keys."""

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Any]:
        found = super().get_source(environment, template)
        target = os.path.realpath(found[1])
        # The folder itself may be a link, which the project's owner shares with others.
        folder = os.path.realpath(self.searchpath[0])
        project = os.path.realpath(os.path.dirname(self.searchpath[0]))
        if not any(os.path.commonpath((target, inside)) == inside for inside in (folder, project)):
            raise jinja2.TemplateError(f'the template "{template}" is a link out of the project')
        return found


def directive_line(directive: Directive) -> str:
    """What stands behind `#SBATCH `."""
    if directive.value is None:
        return f"--{directive.option}"
    return f"--{directive.option}={directive_value(directive.value)}"


def context(plan: JobPlan) -> dict[str, Any]:
    """Everything a template may print, quoted for where it stands."""
    setup = plan.setup
    port = plan.rendezvous.port
    given = dict(plan.env)
    command_text, delimiter = plan.command, "COMMAND"
    if command_text is not None:
        command_text = command_text.rstrip("\n")
        lines = command_text.split("\n")
        while delimiter in lines:
            delimiter += "_"
    source = one_line(plan.source)
    shebang, script = _own_script(plan.script)
    launcher = launchers.find(plan.launcher)
    return {
        "version": __version__,
        "source": source,
        "header": f"Rendered by slurmgen {__version__} from {source} "
        f"(template {one_line(plan.template)}, cluster {one_line(plan.profile)}).",
        "shebang": shebang,
        "script": script,
        "summary": summary(plan),
        "directives": [directive_line(directive) for directive in plan.directives],
        "launcher": plan.launcher,
        "task": None if launcher.is_one_process else f"slurmgen/{launcher.partial}",
        "entrypoint_launcher": launcher.entrypoint,
        "signal": plan.requeue.signal if plan.requeue else None,
        "requeue": plan.requeue is not None,
        "on_node_fail": plan.requeue is not None and plan.requeue.on_node_fail,
        "max_restarts": plan.requeue.max_restarts if plan.requeue else None,
        "is_array": plan.array is not None,
        "several_tasks": plan.layout.ntasks > 1,
        "module_purge": plan.module_purge,
        "module_use": [bash_expandable(path, required=True) for path in plan.module_use],
        "modules": [bash_word(name) for name in plan.modules],
        "venv": _path(setup.venv),
        "conda": _path(setup.conda),
        "uv": _path(setup.uv),
        "exports": [f"{name}={bash_expandable(value, required=False)}" for name, value in plan.env],
        "task_exports": [
            f"{name}={bash_expandable(value, required=False)}" for name, value in plan.task_env
        ],
        "cpus_given": plan.cpus_per_task is not None,
        "threads": None if "OMP_NUM_THREADS" in given else plan.cpus_per_rank,
        "entrypoint": plan.entrypoint,
        "failure_file": plan.entrypoint and "SLURMGEN_FAILURE" not in given,
        "commands": [text.rstrip("\n") for text in setup.commands],
        "rendezvous_address": plan.rendezvous.address,
        "rendezvous_suffix": bash_word(plan.rendezvous.suffix) if plan.rendezvous.suffix else "",
        "port_first": port.first if port is not None else _PORT_FIRST,
        "port_count": port.count if port is not None else _PORT_COUNT,
        "world_size": plan.world_size,
        "nproc_per_task": plan.layout.nproc_per_task,
        "program_lines": _wrap(_program(plan)),
        "stray_lines": _wrap(_stray_variables(plan)),
        "exports_path": "PATH" not in given
        and any(d.option == "export" and d.value == "NIL" for d in plan.directives),
        "uneven": _uneven(plan),
        "command_text": command_text,
        "delimiter": delimiter,
        "launch_lines": _wrap(_launch_words(plan)),
    }


def _own_script(script: str | None) -> tuple[str, str | None]:
    """The interpreter line, which comes before the directives, and what comes behind them."""
    if script is None or not script.startswith("#!"):
        return "#!/bin/bash", None if script is None else script.removesuffix("\n")
    shebang, _, rest = script.partition("\n")
    return shebang, rest.removesuffix("\n")


def summary(plan: JobPlan) -> str:
    """One line that says what is started where."""
    layout = plan.layout
    kind = f"{plan.gpu_type or 'GPU'}" if plan.gpus_per_node else "CPU"
    nodes = f"{plan.nodes} node{'s' if plan.nodes > 1 else ''}"
    launcher = launchers.find(plan.launcher)
    if launcher.is_one_process:
        gpus = f"{plan.gpus_per_node} x {kind}" if plan.gpus_per_node else "no GPU"
        return f"One process on one node with {gpus}."
    ranks = f"{plan.world_size} rank{'s' if plan.world_size > 1 else ''}"
    per_node = layout.ntasks_per_node * layout.nproc_per_task
    cpus = plan.cpus_per_rank or "default"
    each = "one per GPU" if plan.gpus_per_node else f"{cpus} CPU(s) each"
    upto = "up to " if _uneven(plan) else ""
    return f"{ranks} on {nodes} ({upto}{per_node} per node, {each}); {launcher.how}."


def one_line(text: str) -> str:
    """`text` for a comment: whatever is not printable can't end the line."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _path(text: str | None) -> str | None:
    return None if text is None else bash_expandable(text, required=True)


def _program(plan: JobPlan) -> list[str]:
    """The words that each task becomes."""
    launcher = launchers.find(plan.launcher)
    program = launcher.program(plan.layout, plan.nodes, plan.rdzv)
    return [*_container_words(plan), *program, launcher.arguments]


def _container_words(plan: JobPlan) -> list[str]:
    container = plan.setup.container
    if container is None or plan.container not in ("apptainer", "singularity"):
        return []
    words = [plan.container, "exec"]
    gpu = (
        container.gpu
        or (plan.container_gpu if plan.gpus_per_node else None)
        or ({"amd": "rocm"}.get(plan.vendor, plan.vendor) if plan.gpus_per_node else "none")
    )
    if gpu in ("nvidia", "rocm"):
        words.append("--nv" if gpu == "nvidia" else "--rocm")
    for mount in container.mounts:
        words.append("--bind " + bash_expandable(mount, required=True))
    if container.workdir is not None:
        words.append("--pwd " + bash_expandable(container.workdir, required=True))
    words.append(bash_expandable(container.image, required=True))
    return words


def _pyxis_words(container: Container) -> list[str]:
    words = ["--container-image=" + bash_expandable(container.image, required=True)]
    if container.mounts:
        for mount in container.mounts:
            if "," in mount:
                raise Refusal(
                    f'the mount "{mount}" holds a comma',
                    why="pyxis separates mounts by commas",
                    fix="mount its parent folder, or a link without one",
                )
        mounts = [m if ":" in m else f"{m}:{m}" for m in container.mounts]
        words.append("--container-mounts=" + bash_expandable(",".join(mounts), required=True))
    if container.workdir is not None:
        words.append("--container-workdir=" + bash_expandable(container.workdir, required=True))
    return words


def _launch_words(plan: JobPlan) -> list[str]:
    layout = plan.layout
    words = [
        f"--nodes={plan.nodes}",
        f"--ntasks={layout.ntasks}",
        *([] if _uneven(plan) else [f"--ntasks-per-node={layout.ntasks_per_node}"]),
        *([] if plan.cpus_per_task is None else [f"--cpus-per-task={plan.cpus_per_task}"]),
        *([f"--gpus-per-node={plan.gpus_per_node}"] if plan.gpus_on_srun else []),
        "--kill-on-bad-exit=1",
        "--wait=0",
        "--export=ALL",
        *(bash_word(word) for word in plan.srun),
    ]
    if plan.container == "pyxis" and plan.setup.container is not None:
        words += _pyxis_words(plan.setup.container)
    if launchers.find(plan.launcher).is_one_process:
        words += _container_words(plan)
    else:
        words.append('bash -c "$(declare -f task); task \\"\\$@\\"" task')
    if plan.command is not None:
        words.append(f'bash -eo pipefail -c -- "{_trap(plan)}$command"')
    words += [bash_word(word) for word in plan.words]
    return words


# What srun reads as an option (srun(1), INPUT ENVIRONMENT VARIABLES), and the options of
# sbatch by which a job of its own comes to have it.
_SRUN_INPUT = {
    "SLURM_CONSTRAINT": (),
    "SLURM_CPU_BIND": (),
    "SLURM_CPUS_PER_GPU": (),
    "SLURM_CPUS_PER_TASK": ("cpus-per-task",),
    "SLURM_DISTRIBUTION": ("distribution",),
    "SLURM_EXCLUSIVE": ("exclusive",),
    "SLURM_GPU_BIND": ("gpu-bind",),
    "SLURM_GPUS": (),
    "SLURM_GPUS_PER_NODE": ("gpus-per-node",),
    "SLURM_GPUS_PER_SOCKET": (),
    "SLURM_GPUS_PER_TASK": (),
    "SLURM_GRES": (),
    "SLURM_HET_SIZE": (),
    "SLURM_HINT": ("hint",),
    "SLURM_MEM_PER_CPU": ("mem-per-cpu",),
    "SLURM_MEM_PER_GPU": ("mem-per-gpu",),
    "SLURM_MEM_PER_NODE": ("mem",),
    "SLURM_NO_KILL": ("no-kill",),
    "SLURM_NTASKS_PER_GPU": (),
    "SLURM_NTASKS_PER_TRES": (),
    "SLURM_STEP_GRES": (),
    "SLURM_THREADS_PER_CORE": ("threads-per-core", "hint"),
    "SLURM_TRES_BIND": ("tres-bind", "gpu-bind"),
    "SLURM_TRES_PER_TASK": (),
    "SLURM_WORKING_DIR": (),
    "SRUN_CPUS_PER_TASK": ("cpus-per-task",),
}


def _stray_variables(plan: JobPlan) -> list[str]:
    given = {directive.option for directive in plan.directives}
    return [name for name, options in _SRUN_INPUT.items() if given.isdisjoint(options)]


def _uneven(plan: JobPlan) -> bool:
    """Whether some nodes have a task less than the others."""
    return plan.layout.ntasks % plan.nodes != 0


def _trap(plan: JobPlan) -> str:
    """What keeps the `bash` around a command alive when the job's signal reaches it too.

    A signal that Bash traps has its default meaning again in what Bash starts.
    """
    signal = next((d.value for d in plan.directives if d.option == "signal"), None)
    if plan.requeue is not None and plan.requeue.signal is not None:
        # TERM is how preemption tells the program to save.
        return f"trap : {plan.requeue.signal} TERM; "
    if signal is None:
        return ""
    from slurmgen.slurm.grammars.signal import flags_and_name

    flags, name = flags_and_name(signal)
    return "" if "B" in flags or name in ("KILL", "STOP") else f"trap : {name}; "


def _wrap(words: Sequence[str]) -> list[str]:
    """Words joined into lines of at most `_WIDTH` columns, where words are short enough."""
    lines: list[str] = []
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]
