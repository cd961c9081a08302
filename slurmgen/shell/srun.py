"""srun's options (src/common/slurm_opt.c, 19.05 to 26.05; pyxis' where they take a value)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.shell.options import NO, Grammar, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.shell.words import Word

SRUN = Grammar(
    table(
        "accel-bind account acctg-freq autocomplete bb bbf bcast-exclude begin chdir cluster "
        "cluster-constraint clusters comment constraint container container-id container-type "
        "context core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task "
        "deadline delay-boot dependency distribution epilog error exclude export extra "
        "extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task "
        "gres gres-flags het-group hint ignore-signals input job-name jobid licenses mail-type "
        "mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mem-update mincpus mpi "
        "msg-timeout network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu "
        "ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output pack-group partition "
        "power prefer priority profile prolog qos relative reservation resources segment signal "
        "slurmd-debug sockets-per-node switches task-epilog task-prolog tasks-per-node "
        "thread-spec threads threads-per-core time time-min tmp treewidth tres-bind "
        "tres-per-task uid wait wckey "
        "container-image container-mounts container-workdir container-name container-env",
        "async consolidate-segments contiguous debugger-test disable-status exact help hold "
        "interactive label multi-prog no-allocate overcommit oversubscribe parsable preserve-env "
        "quiet quit-on-interrupt reboot spread-job spread-segments stepmgr test-only unbuffered "
        "usage use-min-nodes verbose version wait-for-children whole",
        "bcast compress exclusive external-launcher immediate kill-on-bad-exit nice no-kill "
        "oom-kill-step overlap propagate pty resv-ports send-libs",
    ),
    {
        "A": "account",
        "b": "begin",
        "B": "extra-node-info",
        "c": "cpus-per-task",
        "C": "constraint",
        "d": "dependency",
        "D": "chdir",
        "e": "error",
        "E": "preserve-env",
        "F": "nodefile",
        "G": "gpus",
        "h": "help",
        "H": "hold",
        "i": "input",
        "I": "immediate",
        "J": "job-name",
        "k": "no-kill",
        "K": "kill-on-bad-exit",
        "l": "label",
        "L": "licenses",
        "m": "distribution",
        "M": "clusters",
        "n": "ntasks",
        "N": "nodes",
        "o": "output",
        "O": "overcommit",
        "p": "partition",
        "q": "qos",
        "Q": "quiet",
        "r": "relative",
        "s": "oversubscribe",
        "S": "core-spec",
        "t": "time",
        "T": "threads",
        "u": "unbuffered",
        "v": "verbose",
        "V": "version",
        "w": "nodelist",
        "W": "wait",
        "x": "exclude",
        "X": "disable-status",
        "Z": "no-allocate",
    },
    unknown=NO,
)
# Spellings of one thing.
_ALIASES = {"tasks-per-node": "ntasks-per-node", "pack-group": "het-group", "tres-bind": "gpu-bind"}


class Step(NamedTuple):
    """An srun and its options by long name.

    outer: the srun inside whose task it stands. opaque: some options are in a variable
    nobody knows. start, end: of the word `srun`.
    """

    options: Mapping[str, Word]
    outer: Step | None
    opaque: bool
    start: int
    end: int

    @property
    def nested(self) -> bool:
        """Whether it stands inside a task of another srun."""
        return self.outer is not None

    def option(self, *names: str) -> Word | None:
        """The value of the first of the options that is given."""
        return next((self.options[name] for name in names if name in self.options), None)


def step(options: Mapping[str, Word], *, outer: Step | None, opaque: bool, word: Word) -> Step:
    """The Step of parsed options, each under one name."""
    plain = {_ALIASES.get(name, name): value for name, value in options.items()}
    return Step(plain, outer, opaque, word.start, word.end)
