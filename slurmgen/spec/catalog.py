"""The options of sbatch: which exist, since when, until when, and with what argument.

Read from Slurm's common option table (src/common/slurm_opt.c) at the last patch tag of
every release line from 19.05 to 26.05, and compared with what sbatch of 20.11, 22.05,
24.11 and 26.05 accepts. sbatch understands abbreviations of long options
(`--ntasks-per-no`), which change their meaning when an option is added: only full names
count here.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import NamedTuple

# name, short letter, argument, first and last release line ("-": older, still there)
_TABLE = """
account              A required -     -
acctg-freq           - required -     -
array                a required -     -
autocomplete         - required 23.02 -
batch                - required -     -
bb                   - required -     -
bbf                  - required -     -
begin                b required -     -
chdir                D required -     -
checkpoint           - required -     19.05
cluster              - required -     -
cluster-constraint   - required -     -
clusters             M required -     -
comment              - required -     -
consolidate-segments - no       25.11 -
constraint           C required -     -
container            - required 21.08 -
container-id         - required 23.02 -
container-type       - required 26.05 26.05
context              - required 21.08 -
contiguous           - no       -     -
core-spec            S required -     -
cores-per-socket     - required -     -
cpu-freq             - required -     -
cpus-per-gpu         - required -     -
cpus-per-task        c required -     -
deadline             - required -     -
delay-boot           - required -     -
dependency           d required -     -
distribution         m required -     -
error                e required -     -
exclude              x required -     -
exclusive            - optional -     -
export               - required -     -
export-file          - required -     -
external             - no       25.05 -
extra                - required 23.02 -
extra-node-info      B required -     -
get-user-env         - no       -     -
gid                  - required -     -
gpu-bind             - required -     -
gpu-freq             - required -     -
gpus                 G required -     -
gpus-per-node        - required -     -
gpus-per-socket      - required -     -
gpus-per-task        - required -     -
gres                 - required -     -
gres-flags           - required -     -
help                 h no       -     -
hint                 - required -     -
hold                 H no       -     -
ignore-pbs           - no       -     -
input                i required -     -
job-name             J required -     -
kill-on-invalid-dep  - required -     -
licenses             L required -     -
mail-type            - required -     -
mail-user            - required -     -
mcs-label            - required -     -
mem                  - required -     -
mem-bind             - required -     -
mem-per-cpu          - required -     -
mem-per-gpu          - required -     -
mem-update           - required 26.05 -
mincpus              - required -     -
network              - required -     -
nice                 - optional -     -
no-kill              k optional -     -
no-requeue           - no       -     -
nodefile             F required -     -
nodelist             w required -     -
nodes                N required -     -
ntasks               n required -     -
ntasks-per-core      - required -     -
ntasks-per-gpu       - required 20.11 -
ntasks-per-node      - required -     -
ntasks-per-socket    - required -     -
ntasks-per-tres      - required 20.11 -
oom-kill-step        - optional 24.11 -
open-mode            - required -     -
output               o required -     -
overcommit           O no       -     -
oversubscribe        s no       -     -
parsable             - no       -     -
partition            p required -     -
power                - required -     23.11
prefer               - required 22.05 -
priority             - required -     -
profile              - required -     -
propagate            - optional -     -
qos                  q required -     -
quiet                Q no       -     -
reboot               - no       -     -
requeue              - optional -     -
reservation          - required -     -
resources            - required 25.11 -
resv-ports           - optional 24.05 -
segment              - required 24.05 -
signal               - required -     -
sockets-per-node     - required -     -
spread-job           - no       -     -
spread-segments      - no       25.11 -
stepmgr              - no       24.05 -
switches             - required -     -
tasks-per-node       - required -     -
test-only            - no       -     -
thread-spec          - required -     -
threads-per-core     - required -     -
time                 t required -     -
time-min             - required -     -
tmp                  - required -     -
tres-bind            - required 23.11 -
tres-per-task        - required 23.02 -
uid                  - required -     -
usage                - no       -     -
use-min-nodes        - no       -     -
verbose              v no       -     -
version              V no       -     -
wait                 W no       -     -
wait-all-nodes       - required -     -
wckey                - required -     -
wrap                 - required -     -
"""

_SRUN_ONLY = frozenset(
    """
    accel-bind async bcast bcast-exclude compress cpu-bind cpu_bind debugger-test
    disable-status epilog exact external-launcher het-group ignore-signals immediate
    interactive jobid kill-on-bad-exit label mpi msg-timeout multi-prog no-allocate overlap
    pack-group preserve-env prolog pty quit-on-interrupt relative send-libs slurmd-debug
    task-epilog task-prolog threads treewidth unbuffered wait wait-for-children whole
    """.split()
)


# What decides how many ranks there are, where they sit and what they get: nobody but the plan.
DECIDED_BY_THE_PLAN = frozenset(
    "nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket "
    "ntasks-per-tres tasks-per-node cpus-per-task cpus-per-gpu gpus gpus-per-node "
    "gpus-per-socket gpus-per-task gres tres-per-task distribution overcommit".split()
)


class Option(NamedTuple):
    """One option; `argument` is "no", "optional" or "required", versions are lines or None."""

    name: str
    short: str | None
    argument: str
    since: str | None
    until: str | None


@cache
def options() -> dict[str, Option]:
    """Every option of sbatch by its long name."""
    found = {}
    for row in _TABLE.strip().splitlines():
        name, short, argument, since, until = (
            None if cell == "-" else cell for cell in row.split()
        )
        assert name is not None
        assert argument is not None
        found[name] = Option(name, short, argument, since, until)
    return found


def find(name: str) -> Option | None:
    """The option of that long name, with `-` or `_`."""
    return options().get(name.replace("_", "-"))


def is_srun_only(name: str) -> bool:
    """Whether srun has the option and sbatch refuses it."""
    return name.replace("_", "-") in _SRUN_ONLY


def suggest(name: str) -> str | None:
    """The option that was probably meant."""
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
