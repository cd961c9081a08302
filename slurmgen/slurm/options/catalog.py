"""The options of sbatch and srun: which exist, since when, until when, and with what argument.

Read from Slurm's common option table (src/common/slurm_opt.c) at the last patch tag of
every release line from 19.05 to 26.05, and compared with what sbatch of 20.11, 22.05,
24.11 and 26.05 accepts. sbatch understands abbreviations of long options
(`--ntasks-per-no`), which change their meaning when an option is added: only full names
count here.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

# name; short letter; argument; first and last release line of sbatch, or of what srun alone
# has (`-`: older, still there); whose it is; what else is known of it; and how its values are
# read, of `values.py`. An option that has a key in the job file has its values there.
#
# j: of a heterogeneous job's components, those behind have it too (`reset_each_pass` is not
# set for it). l: its value is a list with commas. p: the plan decides it, and nobody else: how
# many ranks there are, where they sit and what they get.
_TABLE = """
accel-bind           -      required -     -     srun   -     -
account              A      required -     -     both   j     -
acctg-freq           -      required -     -     both   j     acctg-freq
array                a      required -     -     sbatch jl    -
async                -      no       26.05 -     srun   -     -
autocomplete         -      required 23.02 -     both   -     -
batch                -      required -     -     sbatch j     -
bb                   -      required -     -     both   -     -
bbf                  -      required -     -     both   -     -
bcast                -      optional -     -     srun   -     -
bcast-exclude        -      required 21.08 -     srun   -     -
begin                b      required -     -     both   j     -
chdir                D      required -     -     both   j     -
checkpoint           -      required -     19.05 sbatch -     -
cluster              -      required -     -     both   j     -
cluster-constraint   -      required -     -     both   j     -
clusters             M      required -     -     both   jl    -
comment              -      required -     -     both   j     -
compress             -      optional -     -     srun   -     -
consolidate-segments -      no       25.11 -     both   -     -
constraint           C      required -     -     both   l     -
container            -      required 21.08 -     both   j     -
container-id         -      required 23.02 -     both   j     -
container-type       -      required 26.05 26.05 both   j     -
context              -      required 21.08 -     both   j     -
contiguous           -      no       -     -     both   -     -
core-spec            S      required -     -     both   -     from-0
cores-per-socket     -      required -     -     both   -     from-1
cpu-bind             -      required -     -     srun   -     -
cpu-freq             -      required -     -     both   -     cpu-freq
cpus-per-gpu         -      required -     -     both   p     -
cpus-per-task        c      required -     -     both   p     -
deadline             -      required -     -     both   j     -
debugger-test        -      no       -     -     srun   -     -
delay-boot           -      required -     -     both   j     minutes
dependency           d      required -     -     both   jl    -
disable-status       X      no       -     -     srun   -     -
distribution         m      required -     -     both   p     distribution
epilog               -      required -     -     srun   -     -
error                e      required -     -     both   j     -
exact                -      no       20.11 -     srun   -     -
exclude              x      required -     -     both   jl    -
exclusive            -      optional -     -     both   -     -
export               -      required -     -     both   jl    -
export-file          -      required -     -     sbatch j     -
external             -      no       25.05 -     sbatch -     -
external-launcher    -      optional 23.11 -     srun   -     -
extra                -      required 23.02 -     both   j     -
extra-node-info      B      required -     -     both   -     extra-node-info
get-user-env         -      no       -     -     sbatch j     -
gid                  -      required -     -     both   j     -
gpu-bind             -      required -     -     both   -     gpu-bind
gpu-freq             -      required -     -     both   -     gpu-freq
gpus                 G      required -     -     both   p     -
gpus-per-node        -      required -     -     both   p     -
gpus-per-socket      -      required -     -     both   p     -
gpus-per-task        -      required -     -     both   p     -
gres                 -      required -     -     both   lp    -
gres-flags           -      required -     -     both   -     gres-flags
help                 h      no       -     -     both   -     -
het-group            -      required 20.02 -     srun   -     -
hint                 -      required -     -     both   -     hint
hold                 H      no       -     -     both   j     -
ignore-pbs           -      no       -     -     sbatch -     -
ignore-signals       -      required 26.05 -     srun   -     -
immediate            I      optional -     -     srun   -     -
input                i      required -     -     both   j     -
interactive          -      no       20.11 -     srun   -     -
job-name             J      required -     -     both   j     -
jobid                -      required -     -     srun   -     -
kill-on-bad-exit     K      optional -     -     srun   -     -
kill-on-invalid-dep  -      required -     -     sbatch j     kill-on-invalid-dep
label                l      no       -     -     srun   -     -
licenses             L      required -     -     both   l     -
mail-type            -      required -     -     both   l     -
mail-user            -      required -     -     both   -     -
mcs-label            -      required -     -     both   j     -
mem                  -      required -     -     both   j     -
mem-bind             -      required -     -     both   -     mem-bind
mem-per-cpu          -      required -     -     both   -     -
mem-per-gpu          -      required -     -     both   -     -
mem-update           -      required 26.05 -     both   j     -
mincpus              -      required -     -     both   -     from-1
mpi                  -      required -     -     srun   -     -
msg-timeout          -      required -     -     srun   -     -
multi-prog           -      no       -     -     srun   -     -
network              -      required -     -     both   -     -
nice                 -      optional -     -     both   j     nice
no-allocate          Z      no       -     -     srun   -     -
no-kill              k      optional -     -     both   j     no-kill
no-requeue           -      no       -     -     sbatch j     -
nodefile             F      required -     -     both   -     -
nodelist             w      required -     -     both   l     -
nodes                N      required -     -     both   p     -
ntasks               n      required -     -     both   p     -
ntasks-per-core      -      required -     -     both   p     from-1
ntasks-per-gpu       -      required 20.11 -     both   p     -
ntasks-per-node      -      required -     -     both   p     -
ntasks-per-socket    -      required -     -     both   p     -
ntasks-per-tres      -      required 20.11 -     both   p     -
oom-kill-step        -      optional 24.11 -     both   j     0-or-1
open-mode            -      required -     -     both   j     -
output               o      required -     -     both   j     -
overcommit           O      no       -     -     both   p     -
overlap              -      optional 20.11 -     srun   -     -
oversubscribe        s      no       -     -     both   -     -
pack-group           -      required -     -     srun   -     -
parsable             -      no       -     -     both   -     -
partition            p      required -     -     both   l     -
power                -      required -     23.11 both   -     -
prefer               -      required 22.05 -     both   j     -
preserve-env         E      no       -     -     srun   -     -
priority             -      required -     -     both   j     priority
profile              -      required -     -     both   j     profile
prolog               -      required -     -     srun   -     -
propagate            -      optional -     -     both   j     propagate
pty                  -      optional -     -     srun   -     -
qos                  q      required -     -     both   j     -
quiet                Q      no       -     -     both   -     -
quit-on-interrupt    -      no       -     -     srun   -     -
reboot               -      no       -     -     both   j     -
relative             r      required -     -     srun   -     -
requeue              -      optional -     -     sbatch j     -
reservation          -      required -     -     both   jl    -
resources            -      required 25.11 -     both   -     -
resv-ports           -      optional 24.05 -     both   -     -
segment              -      required 24.05 -     both   -     from-1
send-libs            -      optional 21.08 -     srun   -     -
signal               -      required -     -     both   j     -
slurmd-debug         -      required -     -     srun   -     -
sockets-per-node     -      required -     -     both   -     from-1
spread-job           -      no       -     -     both   -     -
spread-segments      -      no       25.11 -     both   -     -
stepmgr              -      no       24.05 -     both   j     -
switches             -      required -     -     both   -     switches
task-epilog          -      required -     -     srun   -     -
task-prolog          -      required -     -     srun   -     -
tasks-per-node       -      required -     -     both   p     -
test-only            -      no       -     -     both   -     -
thread-spec          -      required -     -     both   -     from-1
threads              T      required -     -     srun   -     -
threads-per-core     -      required -     -     both   -     from-1
time                 t      required -     -     both   j     -
time-min             -      required -     -     both   j     -
tmp                  -      required -     -     both   -     memory
treewidth            -      required 23.11 -     srun   -     -
tres-bind            -      required 23.11 -     both   -     -
tres-per-task        -      required 23.02 -     both   lp    -
uid                  -      required -     -     both   j     -
unbuffered           u      no       -     -     srun   -     -
usage                -      no       -     -     both   -     -
use-min-nodes        -      no       -     -     both   -     -
verbose              v      no       -     -     both   -     -
version              V      no       -     -     both   -     -
wait                 W      no       -     -     sbatch j     -
wait                 W      required -     -     srun   -     -
wait-all-nodes       -      required -     -     sbatch j     0-or-1
wait-for-children    -      no       25.05 -     srun   -     -
wckey                -      required -     -     both   j     wckey
whole                -      no       20.11 -     srun   -     -
wrap                 -      required -     -     sbatch -     -
"""

# Two names of one option; of several, the last one counts.
ALIASES = {"tasks-per-node": "ntasks-per-node", "cluster": "clusters", "pack-group": "het-group"}


class Option(NamedTuple):
    """One option; `argument` is "no", "optional" or "required", versions are lines or None.

    grammar: how a value under `sbatch:` is read; None: as any text.
    """

    name: str
    short: str | None
    argument: str
    since: str | None
    until: str | None
    of: str
    facts: str
    grammar: str | None


@cache
def _of(program: str) -> dict[str, Option]:
    found = {}
    for row in _TABLE.strip().splitlines():
        name, short, argument, since, until, of, facts, grammar = row.split()
        if of in (program, "both"):
            found[name] = Option(
                name, _or_none(short), argument, _or_none(since), _or_none(until), of, facts,
                _or_none(grammar),
            )  # fmt: skip
    return found


def _or_none(cell: str) -> str | None:
    return None if cell == "-" else cell


def options() -> dict[str, Option]:
    """Every option of sbatch by its long name."""
    return _of("sbatch")


def srun_options() -> dict[str, Option]:
    """Every option of srun by its long name, but those of plugins."""
    return _of("srun")


def by_letter(found: dict[str, Option]) -> dict[str, Option]:
    """The options that have a short name, by it."""
    return {option.short: option for option in found.values() if option.short}


@cache
def _with(fact: str) -> frozenset[str]:
    return frozenset(name for name, option in options().items() if fact in option.facts)


def decided_by_the_plan() -> frozenset[str]:
    """What decides how many ranks there are, where they sit and what they get."""
    return _with("p")


def job_wide() -> frozenset[str]:
    """What sbatch keeps for the next component of a heterogeneous job."""
    return _with("j")


def lists() -> frozenset[str]:
    """Options whose value is a list with commas."""
    return _with("l")


def find(name: str) -> Option | None:
    """The option of that long name, with `-` or `_`."""
    return options().get(name.replace("_", "-"))


def is_srun_only(name: str) -> bool:
    """Whether srun has the option and sbatch refuses it."""
    dashed = name.replace("_", "-")
    return dashed in srun_options() and dashed not in options()


def suggest(name: str) -> str | None:
    """The option that was probably meant."""
    from difflib import get_close_matches

    squeezed = name.strip("-").replace("_", "-").lower()
    for option in options().values():
        if option.short == name:
            return option.name
    close = get_close_matches(squeezed, options(), n=1, cutoff=0.75)
    return close[0] if close else None


def is_known_in(option: Option, version: str | None) -> bool:
    """Whether a release line (such as 22.05) has the option; None: any line that is alive."""
    if version is None:
        return option.until is None or option.until >= "20.11"
    line = ".".join(version.split(".")[:2])
    return (option.since is None or option.since <= line) and (
        option.until is None or line <= option.until
    )
