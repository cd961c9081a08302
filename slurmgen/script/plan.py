"""resolve(JobSpec, Profile) -> JobPlan: everything decided, nothing quoted yet.

Pure: no clock, no environment, no cluster. The plan holds raw values; `render.py`
quotes them. Each directive remembers the key of the job file it came from.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from slurmgen import launchers
from slurmgen.cluster import additions, choice, limits
from slurmgen.cluster.ask import Ask
from slurmgen.errors import Refusal, Refusals
from slurmgen.jobfile.keys import COPIED_FIRST, COPIED_LAST, MEMORY, OPTIONS, Directive
from slurmgen.jobfile.requeue import MAX_RESTARTS
from slurmgen.launchers import Layout
from slurmgen.slurm.grammars.gres import NO_GPUS

if TYPE_CHECKING:
    from slurmgen.cluster.additions import Added
    from slurmgen.cluster.profile import NodeType, Profile, Rendezvous
    from slurmgen.jobfile.job import JobSpec
    from slurmgen.jobfile.setup import Setup
    from slurmgen.jobfile.variables import Value
    from slurmgen.slurm.grammars.array import Array


class Requeue(NamedTuple):
    """What puts the job back into the queue, and how often.

    signal: the name of the one that tells the program to save, None where there is none.
    """

    signal: str | None
    max_restarts: int
    on_node_fail: bool


class JobPlan(NamedTuple):
    """A job as it will be rendered.

    Counts are per job unless their name says otherwise. `command` is Bash that each
    task evaluates, or None where `words` are literal; both are empty where `script` is the
    job's own. `time` is in seconds, None
    where no limit is given. `cpus_per_task` is Slurm's, `cpus_per_rank` a rank's share;
    None where they are left to the site. `notes` says what was chosen where the job left it open.
    """

    source: str
    job_name: str
    template: str
    profile: str
    launcher: str
    rdzv: str
    directives: tuple[Directive, ...]
    nodes: int
    gpus_per_node: int
    gpu_type: str | None
    layout: Layout
    cpus_per_task: int | None
    cpus_per_rank: int | None
    mem: tuple[str, str] | None
    time: int | None
    distribution: str
    array: Array | None
    setup: Setup
    module_use: tuple[str, ...]
    modules: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    entrypoint: bool
    command: str | None
    words: tuple[str, ...]
    container: str | None
    vendor: str
    srun: tuple[str, ...]
    rendezvous: Rendezvous
    script: str | None = None
    requeue: Requeue | None = None
    module_purge: bool = False
    task_env: tuple[tuple[str, str], ...] = ()
    container_gpu: str | None = None
    gpus_on_srun: bool = False
    vars: tuple[tuple[str, Value], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def world_size(self) -> int:
        return self.layout.world_size


def resolve(spec: JobSpec, profile: Profile, *, source: str = "job.yaml") -> JobPlan:
    """Decide everything about `spec` on the cluster of `profile`.

    source: the name of the job file, for the header and the default job name.
    Raises Refusals with every problem found.
    """
    if choice.is_open(spec):
        return _resolve_choice(spec, profile, source)
    given_type, gpus = spec.gpus_per_node or NO_GPUS
    job_name = spec.job_name or PurePath(source).stem or "job"
    if spec.script is not None:
        return _with_own_script(spec, profile, source, job_name)
    launcher = launchers.find(spec.launcher)
    try:
        layout = launcher.layout(spec, gpus)
    except Refusal as problem:
        raise Refusals([problem]) from None
    problems: list[Refusal] = []
    node_type = limits.choose_node_type(spec, profile, given_type, gpus, problems)
    gpu_type = (node_type.gpu if node_type and gpus else None) or given_type
    typed = profile.gpus.typed
    is_typed = typed == "always" or (typed == "optional" and given_type is not None)
    cpus_per_task = _cpus_per_task(spec, profile, node_type, layout, gpus)
    ask = Ask(node_type, layout, gpu_type if is_typed else None, gpus, cpus_per_task)
    added = additions.of(spec, profile, ask)
    directives = [
        Directive("job-name", job_name, ("job_name",)),
        *_directives(spec, profile, ask, added),
    ]
    mem = distribution = None
    for directive in directives:
        if directive.option in _MEMORY:
            mem = directive.option, directive.value or ""
        elif directive.option == "distribution":
            distribution = directive.value
    limits.check(spec, profile, ask, directives, problems)
    if problems:
        raise Refusals(problems)
    setup = spec.setup
    container = None
    if setup.container is not None:
        there = profile.container
        container = setup.container.runtime or (there.runtime if there is not None else None)
        if container is None:
            container = "pyxis" if setup.container.image.endswith(".sqsh") else "apptainer"
    modules = setup.modules
    env, task_env = added.env, added.task_env
    if task_env:
        task_env = {name: text for name, text in task_env.items() if name not in spec.env}
        if launcher.is_one_process:
            # There is no task: the batch shell's variables are the program's.
            env, task_env = {**env, **task_env}, {}
    return JobPlan(
        source=source,
        job_name=job_name,
        template=spec.template,
        profile=profile.name,
        launcher=spec.launcher,
        rdzv=spec.rdzv,
        directives=tuple(directives),
        nodes=spec.nodes,
        gpus_per_node=gpus,
        gpu_type=gpu_type,
        layout=layout,
        cpus_per_task=cpus_per_task,
        cpus_per_rank=None
        if cpus_per_task is None
        else max(1, cpus_per_task // layout.nproc_per_task),
        mem=mem,
        time=spec.time.seconds if spec.time is not None else None,
        distribution=distribution or "block",
        array=spec.array,
        setup=setup,
        module_use=added.module_use + (modules.use if modules else ()),
        modules=added.modules + (modules.load if modules else ()),
        env=tuple({**env, **spec.env}.items()),
        entrypoint=spec.ddp is not None,
        command=spec.command if isinstance(spec.command, str) else None,
        words=_words(spec),
        container=container,
        vendor=_vendor(profile, node_type),
        srun=added.srun,
        rendezvous=profile.rendezvous,
        requeue=_requeue(spec),
        module_purge=profile.module_purge or bool(modules and modules.purge),
        task_env=tuple(task_env.items()),
        container_gpu=profile.container.gpu if profile.container is not None else None,
        gpus_on_srun=bool(gpus) and profile.gpus.step is not None,
        vars=tuple(spec.vars.items()),
    )


def _resolve_choice(spec: JobSpec, profile: Profile, source: str) -> JobPlan:
    """The plan with the first partition and QOS in which the job has no problem."""
    if spec.script is not None:
        raise Refusals(choice.unknown_ranks(spec))
    if profile.status == "closed":
        problems: list[Refusal] = []
        limits.refuse_closed(profile, problems)
        raise Refusals(problems)
    passed = []
    choices = choice.candidates(spec, profile)
    for index, candidate in enumerate(choices):
        try:
            plan = resolve(candidate.spec, profile, source=source)
        except Refusals as error:
            passed.append((candidate, error.problems[0]))
        else:
            reason = choice.reason(candidate, profile, passed, choices[index + 1 :])
            return plan._replace(notes=(reason,))
    raise Refusals(choice.none_fits(spec, profile, passed))


def _with_own_script(spec: JobSpec, profile: Profile, source: str, job_name: str) -> JobPlan:
    """What `script` starts is not known: counts are those of its directives, 1 where none is."""
    from slurmgen.script.own_directives import directives_as_given

    if profile.status == "closed":
        problems: list[Refusal] = []
        limits.refuse_closed(profile, problems)
        raise Refusals(problems)
    gpu_type, gpus = spec.gpus_per_node or NO_GPUS
    directives = tuple(directives_as_given(spec, profile))
    per_node = spec.ntasks_per_node or 1
    cpus = None if spec.cpus_per_task == "default" else spec.cpus_per_task or 1
    return JobPlan(
        source=source,
        job_name=job_name,
        template=spec.template,
        profile=profile.name,
        launcher=spec.launcher,
        rdzv=spec.rdzv,
        directives=directives,
        nodes=spec.nodes,
        gpus_per_node=gpus,
        gpu_type=gpu_type,
        layout=Layout(spec.ntasks or spec.nodes * per_node, per_node, 1),
        cpus_per_task=cpus,
        cpus_per_rank=cpus,
        mem=next(((d.option, d.value or "") for d in directives if d.option in _MEMORY), None),
        time=spec.time.seconds if spec.time is not None else None,
        distribution="block",
        array=spec.array,
        setup=spec.setup,
        module_use=(),
        modules=(),
        env=(),
        entrypoint=False,
        command=None,
        words=(),
        container=None,
        vendor="nvidia",
        srun=(),
        rendezvous=profile.rendezvous,
        vars=tuple(spec.vars.items()),
        script=spec.script,
    )


_MEMORY = tuple(OPTIONS[key] for key in MEMORY)


def _vendor(profile: Profile, node_type: NodeType | None) -> str:
    """Whose GPUs they are: of the nodes, or of all nodes there where they have one vendor."""
    if node_type is not None:
        return node_type.vendor
    vendors = {kind.vendor for kind in profile.node_types if kind.gpus_per_node or kind.gpu}
    return vendors.pop() if len(vendors) == 1 else "nvidia"


def _words(spec: JobSpec) -> tuple[str, ...]:
    if spec.ddp is not None:
        return ("python3", "-m", "slurmgen.ddp", spec.ddp, *spec.args)
    return () if isinstance(spec.command, str) else tuple(spec.command or ())


def _requeue(spec: JobSpec) -> Requeue | None:
    given = spec.requeue
    if given is None or isinstance(given, bool):
        return None
    if isinstance(given, str):
        return Requeue(None, MAX_RESTARTS, on_node_fail=True)
    return Requeue(given.signal.partition("@")[0], given.max_restarts, given.on_node_fail)


def _cpus_per_task(
    spec: JobSpec, profile: Profile, node_type: NodeType | None, layout: Layout, gpus: int
) -> int | None:
    """Explicit, or a GPU's share times the GPUs of a task, or one CPU a rank."""
    if spec.cpus_per_task == "default":
        return None
    if spec.cpus_per_task is not None:
        return spec.cpus_per_task
    per_gpu = spec.cpus_per_gpu
    if per_gpu is None and node_type is not None:
        per_gpu = node_type.cpus_per_gpu
        if per_gpu is None and profile.gpus.form == "none" and node_type.cpus and gpus:
            # The whole node is the job's.
            per_gpu = node_type.cpus // gpus or None
    if gpus and per_gpu is not None:
        return per_gpu * gpus // layout.ntasks_per_node
    return layout.nproc_per_task


def _directives(spec: JobSpec, profile: Profile, ask: Ask, added: Added) -> list[Directive]:
    layout = ask.layout
    select = ask.node_type.select.given() if ask.node_type else {}
    values = spec.__dict__
    found: list[Directive] = []
    for key, option in COPIED_FIRST.items():
        value = values.get(key) or select.get(key)
        if value is not None:
            found.append(Directive(option, str(value), (key,)))
    found.append(Directive("nodes", str(spec.nodes), ("nodes",)))
    if spec.ntasks is not None or layout.ntasks != spec.nodes * layout.ntasks_per_node:
        found.append(Directive("ntasks", str(layout.ntasks), ("ntasks",)))
    found.append(Directive("ntasks-per-node", str(layout.ntasks_per_node), ("ntasks_per_node",)))
    found += _gpu_directives(spec, profile, ask)
    if ask.cpus_per_task is not None:
        found.append(Directive("cpus-per-task", str(ask.cpus_per_task), ("cpus_per_task",)))
    if profile.memory == "explicit":
        found += _memory_directives(spec, ask)
    if spec.exclusive is not None:
        scope = None if spec.exclusive == "true" else spec.exclusive
        found.append(Directive("exclusive", scope, ("exclusive",)))
    requeue = None if isinstance(spec.requeue, bool) else spec.requeue
    for key, option in COPIED_LAST.items():
        value, origin = values.get(key), (key,)
        if value is None and requeue is not None:
            # A job that starts again would truncate the log of its run before.
            signal = None if isinstance(requeue, str) else requeue.signal
            value = {"signal": signal, "open_mode": "append"}.get(key)
            origin = ("requeue",)
        if value is not None:
            found.append(Directive(option, str(value), origin))
    if spec.requeue is not None:
        found.append(Directive("requeue" if spec.requeue else "no-requeue", None, ("requeue",)))
    for option, value in added.sbatch.items():
        if option not in spec.sbatch:
            found.append(Directive(option, value, ("sbatch", option)))
    for option, given in spec.sbatch.items():
        found.append(Directive(option, given, ("sbatch", option)))
    return found


def _gpu_directives(spec: JobSpec, profile: Profile, ask: Ask) -> list[Directive]:
    gpus, other = ask.gpus, spec.gres
    form = (spec.gpu_form or profile.gpus.form) if gpus else "none"
    if form == "gres":
        asked = f"gpu:{_typed(ask, gpus)}"
        return [Directive("gres", f"{asked},{other}" if other else asked, ("gpus_per_node",))]
    found = []
    if form == "gpus" and spec.nodes > 1:
        # Of a sum for the whole job, Slurm may give one node more than another.
        form = "gpus-per-node"
    if form == "gpus-per-task":
        gpus //= ask.layout.ntasks_per_node
    if form != "none":
        found.append(Directive(form, _typed(ask, gpus), ("gpus_per_node",)))
    if other:
        found.append(Directive("gres", other, ("gres",)))
    return found


def _typed(ask: Ask, count: int) -> str:
    return str(count) if ask.gpu_type is None else f"{ask.gpu_type}:{count}"


def _memory_directives(spec: JobSpec, ask: Ask) -> list[Directive]:
    for key in MEMORY:
        value = getattr(spec, key)
        if value is not None:
            return [Directive(OPTIONS[key], str(value), (key,))]
    node_type = ask.node_type
    if node_type is not None and node_type.mem_per_gpu is not None and ask.gpus:
        return [Directive("mem-per-gpu", node_type.mem_per_gpu, ("mem_per_gpu",))]
    return []
