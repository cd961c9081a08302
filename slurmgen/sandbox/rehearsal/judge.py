"""Everything that was written down -> what is wrong with the job. Pure."""

from __future__ import annotations

import re
from signal import Signals
from typing import TYPE_CHECKING, NamedTuple

from slurmgen import launchers
from slurmgen.diagnostics import WARNING
from slurmgen.sandbox.rehearsal import devices, promises, shells, world
from slurmgen.sandbox.rehearsal.fault import Fault, counted, listing
from slurmgen.sandbox.rehearsal.groups import Group, groups, trainings
from slurmgen.sandbox.rehearsal.stage import REMOTE
from slurmgen.slurm.request import Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slurmgen.sandbox.rehearsal.apart import Bounds
    from slurmgen.sandbox.rehearsal.records import Note, Program
    from slurmgen.sandbox.rehearsal.run import Job, Outcome
    from slurmgen.script.plan import JobPlan

# srun of 22.05 and 23.02 leaves --cpus-per-task of the job behind.
_FORGETS_CPUS = ((22, 5), (23, 11))


class Case(NamedTuple):
    """A job as it was asked for.

    plan: of a job file; None for a script of somebody's own. request: its directives, those of
    its first component; tasks: how many they ask for in all. array_tasks: how many tasks of an
    array were run. signal: what the job was told to save with; to_batch: its batch shell alone.
    comes_back: it is to be run again then. real: its programs ran. submits: it only hands on
    other jobs.
    """

    plan: JobPlan | None
    tasks: int | None
    request: Request = Request(())
    array_tasks: int | None = None
    signal: str | None = None
    to_batch: bool = False
    comes_back: bool = False
    real: bool = False
    submits: bool = False


class Verdict(NamedTuple):
    """faults: in the order of their weight. runs: the trainings of each run of the job."""

    faults: tuple[Fault, ...]
    runs: tuple[tuple[Group, ...], ...]


def judge(case: Case, outcome: Outcome) -> Verdict:
    """Every fault once, however many ranks or tasks have it."""
    job = outcome.job
    if outcome.broken:
        return Verdict((_broken(outcome.broken),), ())
    if job is None:
        return Verdict((_refused(outcome.refused),), ())
    failing = outcome.failing.job_id if outcome.failing else None
    all_groups = [group for group in groups(outcome.programs) if group.job != failing]
    runs: dict[tuple[str, int], list[Group]] = {}
    for group in all_groups:
        runs.setdefault((group.job, group.restart), []).append(group)
    trained = [tuple(trainings(found)) for found in runs.values()]
    notes = [note for note in outcome.notes if note.job != failing]
    found = list(_noted(notes, job, trained))
    found += shells.check(case.request, job, notes)
    found += _ended(case, job, notes, trained)
    failed = any(state.exit_code != "0:0" for state in job.states)
    for run in trained:
        for group in run:
            found += world.check(group)
        unused = devices.check(
            run,
            job.gpus.get(run[0].job, {}),
            tasks=case.tasks,
            one_process=_is_one_process(case.plan),
        )
        # A job that fails may not have come to what would have used the rest.
        found += [f for f in unused if not failed or f.rule not in devices.IDLE]
        if case.plan is not None and case.plan.script is None and run:
            largest = max(run, key=lambda group: len(group.ranks))
            own = [note for note in notes if (note.job, note.restart) == run[0][:2]]
            found += promises.check(case.plan, largest, own)
    found += _runs(case, job, trained)
    found += _cpus(case, outcome, notes)
    if outcome.failing is not None and trained and len(trained[0]) == 1:
        found += _masked(outcome.failing)
    again = [group for group in groups(outcome.programs) if group.job == failing]
    if case.plan is None and _shares_nodes(case.request):
        found += world.same_port([*all_groups, *again])
    unique = {(fault.rule, fault.line, fault.key): fault for fault in reversed(found)}
    return Verdict(tuple(reversed(unique.values())), tuple(trained))


# Hardly any node has more GPUs.
_MOST_GPUS = 8


def _shares_nodes(request: Request) -> bool:
    """Whether other jobs may run on the nodes of this one."""
    whole = request.exclusive or request.mem == 0 or (request.node_gpus or 0) >= _MOST_GPUS
    return not whole


def _is_one_process(plan: JobPlan | None) -> bool:
    return plan is not None and launchers.find(plan.launcher).is_one_process


def _broken(what: str) -> Fault:
    return Fault(
        "job-runs-wild",
        f"the job ends its own rehearsal: {what}",
        "on a cluster it would do the same to whatever else runs on its nodes for this user",
        "look for kill and for what starts itself again and again",
    )


def _refused(said: str) -> Fault:
    lines = [re.sub(r"^sbatch: (error: |fatal: )?", "", line) for line in said.splitlines()]
    shown = " ".join(line.strip() for line in lines if line) or "without a word"
    return Fault(
        "sbatch-refused",
        f"sbatch does not take the job: {shown}",
        "a sandbox of exactly the job's shape was asked, so no cluster of this Slurm would",
        "change what it names; `slurmgen lint` knows most of these by their place",
    )


# --- what was noted on the way -------------------------------------------------------------


def _noted(notes: list[Note], job: Job, runs: list[tuple[Group, ...]]) -> Iterator[Fault]:
    by_kind: dict[str, list[Note]] = {}
    for note in notes:
        by_kind.setdefault(note.kind, []).append(note)
    for kind, found in by_kind.items():
        fault = _of_note(kind, found, job)
        if fault is not None:
            yield fault
    for run in runs:
        for group in run:
            for rank in group.ranks:
                copied = [w for w in rank.program.argv if re.search(r"/spool/.*/job\d+/", w)]
                if copied:
                    yield Fault(
                        "script-folder",
                        f"the program is given {copied[0].rsplit('/', 1)[-1]} in Slurm's own "
                        "spool folder",
                        "a job runs a copy of the script there, so $0 and BASH_SOURCE lead to "
                        "nothing else",
                        "use $SLURM_SUBMIT_DIR, or a path from the folder it is submitted in",
                    )
                    return


def _of_note(kind: str, found: list[Note], job: Job) -> Fault | None:
    first = found[0]
    content = first.content
    text = str(content.get("text", ""))
    line = first.line if first.script.endswith("/slurm_script") else 0
    if kind == "unmet":
        came, nodes = content["came"], content["nodes"]
        _, _, where = str(content["key"]).partition(" ")
        local = "localhost of" in where
        return Fault(
            "rendezvous-unmet",
            f"torchrun waits for {nodes} nodes, and {came} came"
            + (" to each localhost" if local else f" to {where}"),
            "an endpoint of localhost is another one on each node"
            if local
            else "it was not started on every node, or not with the same endpoint: it waits "
            "until its rendezvous times out",
            "give the first node's name as --rdzv-endpoint"
            if local
            else "srun --nodes and --ntasks-per-node=1 before torchrun, with as many nodes as "
            "--nnodes says",
        )
    if kind == "surplus":
        return Fault(
            "double-launch",
            f"{len(found) + int(content['nodes'])} launchers were started for "
            f"{counted(int(content['nodes']), 'node')}",
            "a launcher is for one task per node: each starts all ranks of its node",
            "srun --ntasks-per-node=1 with as many --ntasks as nodes, or drop the launcher",
        )
    if kind == "launcher-failed":
        return Fault(
            "launcher-refused",
            str(content["message"]),
            "the launcher ends there",
            "mend its options",
        )
    if kind == "ssh":
        return Fault(
            "launcher-ssh",
            f"deepspeed is to start {content['nodes']} nodes by ssh, with hostfile "
            f"{content['hostfile']}" + ("" if content["exists"] else ", which does not exist"),
            "most clusters allow no ssh between nodes, and Slurm knows nothing of what it starts",
            "start it with srun, a task per GPU: deepspeed takes its ranks from the environment",
        )
    if kind == "container":
        flags = {"nv", "nvccli", "rocm"} & set(content["options"])
        if flags or not job.gpus or content["runtime"] not in ("apptainer", "singularity"):
            return None
        if not any(gpus for nodes in job.gpus.values() for gpus in nodes.values()):
            return None
        return Fault(
            "container-no-gpu",
            f"{content['runtime']} is started without --nv: the program sees no GPU",
            "a container has none of the machine's drivers by itself",
            f"write {content['runtime']} exec --nv, or --rocm for AMD",
        )
    if kind == "conda-unready":
        return Fault(
            "conda-not-initialised",
            "conda activate fails: conda is not a function of this shell",
            "a batch shell does not read ~/.bashrc, where `conda init` put it",
            'write eval "$(conda shell.bash hook)" before it',
        )
    if kind == "conda-nounset":
        return Fault(
            "conda-nounset",
            "conda activate runs under set -u",
            "the scripts that it reads use variables that are not set, and end the job",
            "write set +u before it and set -u behind it",
            line=line,
            severity=WARNING,
        )
    if kind == "no-command":
        return Fault(
            "command-torn",
            f"the shell takes {text.partition(' ')[0]!r} for a command",
            "the line before it ends without a backslash, with a blank behind it, or is a comment",
            "end every line of a command but the last with a backslash and nothing behind it",
            line=line,
        )
    return None


# --- how it ended --------------------------------------------------------------------------

_SAID = re.compile(
    r"(?:slurm_script|bash): (?:line )?(\d+): (.*)|"
    r"((?:srun|slurmstepd)[^:\n]*: (?:error|fatal): .*)"
)
# The last line of a traceback.
_RAISED = re.compile(r"^(?:\w+\.)*\w+(?:Error|Exception)(?:: .*)?$", re.MULTILINE)


def _ended(
    case: Case, job: Job, notes: list[Note], runs: list[tuple[Group, ...]]
) -> Iterator[Fault]:
    if job.flooded:
        yield Fault(
            "log-flooded",
            "the job printed more than 64 MiB, and was ended",
            "with its real programs it prints no less, and a full disk ends every job there",
            "look for a loop that prints, and send what a tool prints to a file or to /dev/null",
        )
        return
    if job.endless and not case.real:
        yield Fault(
            "job-endless",
            f"the job goes on and on, and was ended after {job.seconds:.0f} s",
            "its programs had nothing to do, so that all of this is the script's own",
            "look for a loop without an end; if it needs the time, give a larger --limit",
        )
        return
    if job.hung and case.real:
        # It has run for as long as it was to.
        return
    if job.hung:
        yield Fault(
            "step-waits" if job.serial else "job-hangs",
            "a step waits for nodes that the step around it holds"
            if job.serial
            else "the job came to a stop before its program was started",
            "Slurm keeps it back until they are free, which they never are: step creation "
            "temporarily disabled"
            if job.serial
            else f"the last that it said: {_tail(job.log)}",
            "give the inner srun --overlap --mem=0, or don't start it inside a task"
            if job.serial
            else "look at what the script waits for",
        )
        return
    if job.serial:
        yield Fault(
            "steps-serial",
            "steps that were started side by side run one after the other",
            "each takes all memory, or all CPUs, of the job",
            "give each --exact, --mem, --gres and --cpus-per-task for its share",
            severity=WARNING,
        )
    if job.heard is False:
        yield _unheard(case, job)
        return
    if job.left:
        yield Fault(
            "left-behind",
            "the script ended while its program was still running",
            "Slurm ends with the script whatever it started in the background",
            "write wait as the last line, or start the program without &",
        )
        return
    bad = [state for state in job.states if state.exit_code != "0:0"]
    if bad:
        yield _failed(job, bad[0].exit_code, notes)
    elif not runs and not case.real and not case.submits:
        yield Fault(
            "program-missing",
            "the script ran to its end, and started no program of its own",
            "what it starts is neither Python nor a launcher nor under srun",
            "put srun before the program, or look at what the script does before it gets there",
        )


def _unheard(case: Case, job: Job) -> Fault:
    """Slurm has sent the signal of --signal, and no program and no trap got it."""
    directive = case.request.directive("signal")
    line = directive.line if directive is not None else 0
    number = int(Signals[f"SIG{case.signal}"])
    if any(state.exit_code in (f"0:{number}", f"{128 + number}:0") for state in job.states):
        return Fault(
            "signal-kills",
            f"{case.signal} ends the job, and no program is told",
            "it goes to the batch shell alone (B:), which has no trap for it then"
            if case.to_batch
            else "it goes to every process of the steps, and a shell without a trap dies of it",
            f"set a trap for {case.signal} above the program, and run that in the background with "
            "wait behind it"
            if case.to_batch
            else "start the program with exec, so that no shell is around it",
            line=line,
        )
    return Fault(
        "signal-unheard",
        f"Slurm sends {case.signal} before the time limit, and nobody gets it",
        "the batch shell gets it, and runs its trap only when the program in the foreground is over"
        if case.to_batch
        else "it goes to the steps of the job, and no srun has started one",
        "put the program into the background, and write wait $! behind it"
        if case.to_batch
        else "start the program with srun, or write --signal=B: and exec before the program",
        line=line,
    )


def _failed(job: Job, exit_code: str, notes: list[Note]) -> Fault:
    said = [found for found in _SAID.finditer(job.log) if "Terminating" not in found.group()]
    failures = [
        note
        for note in notes
        if note.kind == "failed" and note.step == "batch" and note.script.endswith("slurm_script")
    ]
    status, _, signal = exit_code.partition(":")
    what = f"status {status}" if signal in ("", "0") else f"signal {signal}"
    line = failures[-1].line if failures else 0
    why = f"the last that it said: {_tail(job.log)}"
    if said:
        first = said[0]
        why = first[2] or first[3]
        if first[1] and not line and "slurm_script" in first.group():
            line = int(first[1])
    raised = _RAISED.search(job.log)
    if raised is not None:
        why = raised.group()[:200]
    command = str(failures[-1].content["text"]).partition(" ")[2] if failures else ""
    where = f" at `{_first_line(command)}`" if command else ""
    fix = "mend that line, or what it needs on this machine"
    if "execve" in why:
        why += ": the step has no PATH, or the program is not there"
        fix = "srun --export=ALL brings the batch shell's environment into the step"
    return Fault("job-failed", f"the job ends with {what}{where}", why, fix, line=line)


def _first_line(command: str) -> str:
    first, _, rest = command.partition("\n")
    return first[:90] + (" …" if rest or len(first) > 90 else "")


def _tail(log: str) -> str:
    lines = [line for line in log.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing"


def _masked(failing: Job) -> Iterator[Fault]:
    if all(state.exit_code == "0:0" for state in failing.states):
        yield Fault(
            "status-masked",
            "a program that fails leaves the job COMPLETED with status 0",
            "a job's status is that of the script's last command, and a pipe's that of its last",
            "write set -eo pipefail above, or exit with the program's status",
            severity=WARNING,
        )


# --- runs: tasks of an array, and a job that comes back ------------------------------------


def _runs(case: Case, job: Job, runs: list[tuple[Group, ...]]) -> Iterator[Fault]:
    if case.array_tasks is not None:
        indices = {rank.program.array_task for run in runs for group in run for rank in group.ranks}
        if len(indices) < case.array_tasks and not job.hung:
            yield Fault(
                "array-task-missing",
                f"{len(indices)} of {case.array_tasks} tasks of the array started a program",
                "the others ended before",
                "look at what depends on SLURM_ARRAY_TASK_ID",
                key=("array",),
            )
        shapes = {tuple(sorted(len(group.ranks) for group in run)) for run in runs}
        if len(shapes) > 1:
            yield Fault(
                "array-tasks-differ",
                f"tasks of the array start different numbers of processes: {listing(shapes)}",
                "each is a job of its own, of the same shape",
                "look at what depends on SLURM_ARRAY_TASK_ID",
                key=("array",),
            )
    if case.comes_back and case.signal is not None and runs and not job.hung:
        restarts = sorted({group.restart for run in runs for group in run})
        if restarts != [0, 1]:
            yield Fault(
                "not-requeued",
                f"the job did not come back after {case.signal}"
                if restarts == [0]
                else f"the job came back {max(restarts)} times",
                f"the program ended with status 75; the script said: {_tail(job.log)}",
                "look at the end of the script, or at a template of the project",
                key=("requeue",),
            )
        numbers = {
            (group.restart, rank.program.env.get("SLURMGEN_RESTART"))
            for run in runs
            for group in run
            for rank in group.ranks
        }
        if any(str(restart) != told for restart, told in numbers):
            yield Fault(
                "restart-wrong",
                f"SLURMGEN_RESTART is not how often the job came back: {listing(numbers)}",
                "a program that counts by it would start anew",
                "report it, unless the project has a template of its own",
                key=("requeue",),
            )


def _cpus(case: Case, outcome: Outcome, notes: list[Note]) -> Iterator[Fault]:
    """Slurm's own words for it are the options of the step and its release."""
    release = tuple(int(part) for part in outcome.version.split(".")[:2])
    if not _FORGETS_CPUS[0] <= release < _FORGETS_CPUS[1]:
        return
    if case.plan is not None or (case.request.cpus_per_task or 1) == 1 or (case.tasks or 1) == 1:
        return
    told = {
        (program.job, program.restart)
        for program in outcome.programs
        if "SRUN_CPUS_PER_TASK" in program.env
    }
    for note in notes:
        options = note.content.get("options") if note.kind == "step" else None
        words = [str(word) for word in note.content.get("words", ())]
        if options is None or (note.job, note.restart) in told or not _trains(words):
            continue
        if not any(_gives_cpus(str(option)) for option in options):
            yield Fault(
                "cpus-not-inherited",
                f"srun starts its tasks with one CPU each, not {case.request.cpus_per_task}",
                f"srun of Slurm {outcome.version} does not inherit --cpus-per-task",
                'write srun --cpus-per-task="$SLURM_CPUS_PER_TASK"',
                severity=WARNING,
            )
            return


_TRAINS = re.compile(r"(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|\S+\.(?:py|sh))")


def _trains(words: list[str]) -> bool:
    """Whether a step starts a program of the user's own, not `hostname` or the like."""
    return any(_TRAINS.fullmatch(part) for word in words for part in word.split())


def _gives_cpus(option: str) -> bool:
    return option.startswith(("--cpus-per-task", "--exact", "--cpus-per-gpu")) or (
        option.startswith("-c") and not option.startswith("--")
    )


def missing_here(notes: Iterable[Note]) -> list[str]:
    """Commands that this machine lacks, and that were taken to succeed."""
    texts = (str(note.content["text"]) for note in notes if note.kind == "missing")
    return sorted({text.partition(" ")[0] for text in texts})


def not_run(programs: Iterable[Program]) -> list[str]:
    """What would have reached other machines, or other rights, and was taken to succeed."""
    return sorted({one.name for one in programs if one.what == "tool" and one.name in REMOTE})


def unbounded(bounds: Bounds, *, real: bool) -> list[str]:
    """What the script did to this machine, as far as that is not what was asked for."""
    found = []
    if not bounds.processes:
        found.append("what it starts in the background, and whom it kills")
    if not bounds.network and not real:
        found.append("what it does over the network")
    if not bounds.files and not real:
        found.append("what it writes and deletes")
    notes = []
    if found:
        why = "since this machine lets this user make no namespaces"
        notes.append(f"real, {why}: {'; '.join(found)}")
    if bounds.real:
        notes.append(f"real: what it writes and deletes in {', '.join(bounds.real)}")
    return notes
