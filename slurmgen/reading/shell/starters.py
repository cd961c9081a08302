"""What starts processes of a training program: torchrun, accelerate, deepspeed, mpirun."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.shell.options import REQUIRED, Grammar, parse_options, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurmgen.reading.shell.words import Word

TORCHRUN = "torchrun"
TORCH_LAUNCH = "torch.distributed.launch"
ACCELERATE = "accelerate"
DEEPSPEED = "deepspeed"
MPIRUN = "mpirun"
HOROVODRUN = "horovodrun"


class Launcher(NamedTuple):
    """kind: one of the names above. options: by their name with underscores.

    opaque: some options are in a variable or a file nobody knows.
    """

    kind: str
    options: Mapping[str, Word]
    opaque: bool
    start: int
    end: int

    def option(self, *names: str) -> Word | None:
        """The value of the first of the options that is given."""
        return next((self.options[name] for name in names if name in self.options), None)


# torch/distributed/run.py and launch.py of 2.13; argparse takes `_` and `-` alike here.
_TORCHRUN = Grammar(
    table(
        "nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts "
        "monitor-interval start-method role log-dir redirects tee local-ranks-filter node-rank "
        "master-addr master-port local-addr logs-specs numa-binding signals-to-handle "
        "duplicate-stdout-filters duplicate-stderr-filters event-log-handler",
        "standalone m module no-python run-path use-env virtual-local-rank use-libuv "
        "auto-configure-nccl",
    ),
    {"m": "module", "r": "redirects", "t": "tee"},
    unknown=REQUIRED,
)
# accelerate/commands/launch.py of 1.x: what takes no value; all others do.
_ACCELERATE = Grammar(
    table(
        "config-file num-processes num-machines machine-rank main-process-ip main-process-port "
        "mixed-precision num-cpu-threads-per-process gpu-ids deepspeed-config-file zero-stage "
        "rdzv-backend rdzv-conf max-restarts monitor-interval dynamo-backend "
        "same-network role tee log-dir deepspeed-hostfile deepspeed-multinode-launcher",
        "multi-gpu cpu tpu mps quiet m module no-python use-deepspeed use-fsdp use-megatron-lm "
        "enable-cpu-affinity debug use-xpu ipex dynamo-use-dynamic",
    ),
    {"m": "module", "q": "quiet"},
    unknown=REQUIRED,
)
_DEEPSPEED = Grammar(
    table(
        "hostfile include exclude num-nodes num-gpus min-elastic-nodes max-elastic-nodes "
        "master-port master-addr node-rank launcher launcher-args module autotuning "
        "ssh-port bind-core-list save-pid-path",
        "module no-python no-local-rank no-ssh no-ssh-check force-multi save-pid "
        "elastic-training bind-cores-to-rank enable-each-rank-log",
    ),
    {"H": "hostfile", "i": "include", "e": "exclude"},
    unknown=REQUIRED,
)
_MPIRUN = Grammar(
    table(
        "n np c N npernode map-by bind-to rank-by host H hostfile machinefile f ppn x mca genv "
        "env wdir wd prefix app rf rankfile output-filename launcher bootstrap hosts "
        "perhost iface cpus-per-proc cpus-per-rank pernode-list",
        "oversubscribe report-bindings tag-output l v q quiet allow-run-as-root "
        "bind-to-core bycore bynode bysocket pernode display-map nooversubscribe genvall "
        "display-allocation use-hwthread-cpus",
    ),
    {"n": "np", "c": "np", "N": "npernode", "x": "x", "H": "host", "f": "f", "l": "l", "v": "v"},
    single_dash=True,
    abbreviates=False,
)
_HOROVODRUN = Grammar(
    table(
        "np num-proc hosts H hostfile network-interface start-timeout ssh-port", "verbose gloo mpi"
    ),
    {"p": "ssh-port", "H": "hosts"},
    single_dash=True,
    abbreviates=False,
)
_MPI_NAMES = frozenset("mpirun mpiexec orterun prterun mpiexec.hydra mpirun.openmpi".split())
# OpenMPI's take two words each.
_TWO_VALUES = frozenset({"mca", "gmca", "pmixmca", "prtemca", "genv", "env"})


class Started(NamedTuple):
    """A launcher and the words of what it starts."""

    launcher: Launcher
    rest: tuple[Word, ...]
    is_python: bool


def read_launcher(words: Sequence[Word]) -> Started | None:
    """The launcher that `words` call, None where they call none."""
    name = words[0].name
    if name in _MPI_NAMES:
        return _mpi(words)
    kind, skip = _kind(words)
    if kind is None:
        return None
    grammar = _GRAMMARS[kind]
    given = parse_options(words[skip:], grammar)
    options = {key.replace("-", "_"): value for key, value in given.options.items()}
    opaque = given.opaque or (kind == ACCELERATE and "config_file" in options)
    launcher = Launcher(kind, options, opaque, words[0].start, words[skip - 1].end)
    is_python = "no_python" not in options and kind != HOROVODRUN
    return Started(launcher, given.rest, is_python=is_python)


_GRAMMARS = {
    TORCHRUN: _TORCHRUN,
    TORCH_LAUNCH: _TORCHRUN,
    ACCELERATE: _ACCELERATE,
    DEEPSPEED: _DEEPSPEED,
    HOROVODRUN: _HOROVODRUN,
}
_MODULES = {
    "torch.distributed.run": TORCHRUN,
    "torch.distributed.launcher": TORCHRUN,
    "torch.distributed.launch": TORCH_LAUNCH,
    "accelerate.commands.launch": ACCELERATE,
    "deepspeed.launcher.runner": DEEPSPEED,
}


def _kind(words: Sequence[Word]) -> tuple[str | None, int]:
    """The launcher's kind and how many words its name takes."""
    name = words[0].name
    if name in ("torchrun", "torchrun.exe"):
        return TORCHRUN, 1
    if name in ("deepspeed", "ds"):
        return DEEPSPEED, 1
    if name == "horovodrun":
        return HOROVODRUN, 1
    if name == "accelerate" and len(words) > 1 and words[1].text == "launch":
        return ACCELERATE, 2
    if name == "accelerate-launch":
        return ACCELERATE, 1
    if name.startswith("python"):
        for at, word in enumerate(words[1:-1], start=1):
            text = word.text
            if text == "-m":
                return _MODULES.get(words[at + 1].text), at + 2
            if not text.startswith("-") or text == "-c":
                break
    return None, 0


def _mpi(words: Sequence[Word]) -> Started:
    options: dict[str, Word] = {}
    rest = list(words[1:])
    opaque = False
    while rest:
        given = parse_options(rest, _MPIRUN)
        opaque = opaque or given.opaque
        options.update(given.options)
        rest = list(given.rest)
        # `-x A=b` and `--mca key value` leave one word more behind.
        if rest and _TWO_VALUES & set(given.options):
            rest = rest[1:]
            continue
        break
    named = {key.replace("-", "_"): value for key, value in options.items()}
    if "n" in named:
        named["np"] = named.pop("n")
    launcher = Launcher(MPIRUN, named, opaque, words[0].start, words[0].end)
    return Started(launcher, tuple(rest), is_python=False)
