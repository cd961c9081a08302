"""What starts other programs, in place of it: srun, torchrun, accelerate, deepspeed, mpirun,
container runtimes and environment runners. Reads the same options, and starts the same words.

    start.py STAGE NAME ARGUMENT...

Run as `python -I -S`: it needs nothing but the standard library and `slurmgen.reading.shell`,
and a job may start one on each of a hundred nodes.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

# The stage holds a link to the package that made it.
sys.path.insert(0, str(Path(sys.argv[1], "package").resolve()))

from slurmgen.reading.shell import wrappers
from slurmgen.reading.shell.options import Grammar, parse_options
from slurmgen.reading.shell.srun import SRUN
from slurmgen.reading.shell.starters import read_launcher
from slurmgen.reading.shell.words import TEXT, Piece, Word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What only prints, or only arranges files and time, and does so here as it would there.
_HARMLESS = frozenset(
    "[ awk basename bash cat cut dash date dirname echo env expr false getent grep head hostname "
    "id ksh ls lscpu nproc printenv printf pwd sacct scancel scontrol sed seq sh sinfo sleep "
    "sort squeue tail test tr true uname uniq uptime wc which whoami zsh".split()
)
_SHELLS = frozenset("bash sh dash zsh ksh".split())


def main(stage: Path, name: str, arguments: list[str]) -> NoReturn:
    if name == "srun":
        _srun(stage, arguments)
    if name == "spawn":
        _spawn(stage, arguments)
    words = [name, *arguments]
    if name in wrappers.CONTAINERS:
        _container(stage, words)
    if name in wrappers.RUNNER_NAMES:
        _runner(stage, words)
    if name in _TRANSPARENT:
        grammar = wrappers.WRAPPERS[name]
        rest = _rest(arguments, grammar)[wrappers.OPERANDS.get(name, 0) :]
        if name == "nsys":
            rest = _rest(rest[1:], grammar)
        _become(stage, rest)
    _launcher(stage, words)


# --- srun ----------------------------------------------------------------------------------


def _srun(stage: Path, arguments: list[str]) -> NoReturn:
    given = parse_options(_words(arguments), SRUN)
    count = len(arguments) - len(given.rest)
    options, program = arguments[:count], arguments[count:]
    _note(stage, "step", options=options, words=program)
    os.environ["PATH"] = _first_on_path(stage)
    program = _stand_ins(stage, program)
    os.execv(_real(stage, "srun"), ["srun", *_without_pyxis(options), *program])


def _without_pyxis(options: list[str]) -> list[str]:
    """Without the options of a plugin that is not in a plain Slurm."""
    kept = []
    rest = iter(options)
    for word in rest:
        name = word.partition("=")[0]
        if name in ("--container-id", "--container-type"):
            kept.append(word)
        elif name.startswith("--container-"):
            if "=" not in word and not name.endswith(("-home", "-save", "-writable")):
                next(rest, None)
        elif not name.startswith("--no-container-"):
            kept.append(word)
    return kept


def _stand_ins(stage: Path, words: list[str]) -> list[str]:
    """The words that a task starts with, what isn't to run replaced by what stands for it."""
    if not words:
        return words
    path, name = words[0], os.path.basename(words[0])
    shim = stage / "bin" / name
    if name in _SHELLS:
        at, is_code = _shell_operand(words)
        if is_code:
            # `bash -c CODE NAME program…`: what stands behind the code may be a program, too.
            return [*words[: at + 2], *_stand_ins(stage, words[at + 2 :])]
        if at < len(words) and not os.path.exists(words[at]):
            # A script that is on the cluster only.
            return [str(stage / "bin" / "probe"), *words]
        return words
    if shim.exists():
        return [str(shim), *words[1:]] if "/" in path else words
    if name in wrappers.WRAPPERS or name == "env" or name in _HARMLESS:
        return words
    if "/" in path and _is_script(path):
        return words
    return [str(stage / "bin" / "probe"), *words]


def _shell_operand(words: list[str]) -> tuple[int, bool]:
    """Where the script, or with True the code, stands in `bash -eo pipefail -c -- CODE …`."""
    at, is_code = 1, False
    while at < len(words) and words[at].startswith(("-", "+")) and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        is_code = is_code or ("c" in word and not word.startswith("--"))
        if word.endswith(("o", "O")) and not word.startswith("--"):
            at += 1
    return at, is_code


def _is_script(path: str) -> bool:
    """Whether it is a text of the user's own that a shell runs: what it starts is seen."""
    try:
        with open(path, "rb") as file:
            start = file.read(64)
    except OSError:
        return False
    return start.startswith(b"#!") and b"python" not in start.split(b"\n", 1)[0]


# --- launchers -----------------------------------------------------------------------------


def _launcher(stage: Path, words: list[str]) -> NoReturn:
    started = read_launcher(_words(words))
    if started is None:
        # `accelerate env`, `deepspeed` alone: nothing of the job's own.
        _note(stage, "helper", words=words)
        sys.exit(0)
    options = {name: word.text for name, word in started.launcher.options.items()}
    rest = words[len(words) - len(started.rest) :]
    if not rest:
        _fail(stage, f"{started.launcher.kind}: nothing to start")
    kind = started.launcher.kind
    address = os.environ.get("MASTER_ADDR")
    _note(stage, "launcher", launcher=kind, options=options, words=rest, address=address)
    program = rest
    if started.is_python:
        python = words[0] if os.path.basename(words[0]).startswith("python") else "python3"
        module = ["-m"] if {"module", "m"} & set(options) else []
        program = [os.path.basename(python), "-u", *module, *rest]
    if kind in ("torchrun", "torch.distributed.launch"):
        _torchrun(stage, options, program, old=kind != "torchrun")
    if kind == "accelerate":
        _accelerate(stage, options, program)
    if kind == "deepspeed":
        _deepspeed(stage, options, program)
    _mpirun(stage, options, program)


def _torchrun(stage: Path, options: dict[str, str], program: list[str], *, old: bool) -> NoReturn:
    visible = _visible_gpus()
    nproc = _count(stage, options.get("nproc_per_node", "1"), visible)
    least, _, most = options.get("nnodes", "1").partition(":")
    if not least.isdecimal() or (most and not most.isdecimal()):
        _fail(stage, f"torchrun: --nnodes={options['nnodes']} is no number")
    nodes = int(most or least)
    world = _World(nproc, nodes)
    if old:
        program = [*program[:3], f"--local-rank={_RANK}", *program[3:]]
    # torchrun takes each argument for a template, in which $$ is a $.
    program = [word.replace("$$", "$") for word in program]
    if "standalone" in options:
        world = _World(nproc, 1, address=_host(), port=str(20_000 + os.getpid() % 9000))
        _start(stage, world, program)
    backend = options.get("rdzv_backend", "static")
    endpoint = options.get("rdzv_endpoint", "")
    if backend == "static":
        host, _, port = endpoint.rpartition(":")
        host = host or options.get("master_addr", "127.0.0.1")
        port = port if endpoint else options.get("master_port", "29500")
        node_rank = options.get("node_rank", "0")
        if not node_rank.isdecimal():
            _fail(stage, f"torchrun: --node-rank={node_rank} is no number")
        _check_host(stage, host)
        _check_port(stage, port)
        _start(stage, world._replace_at(int(node_rank), host, port), program)
    host, _, port = endpoint.rpartition(":") if ":" in endpoint else (endpoint, "", "29400")
    _check_host(stage, host)
    if port:
        _check_port(stage, port)
    if host in ("", "localhost") or host.startswith("127.0.0."):
        # Each node's own: agents of other nodes never hear of it.
        host = f"localhost of {_host()}"
    key = f"{options.get('rdzv_id', 'none')} {host}:{port}"
    _meet(stage, key, world, program)


def _meet(stage: Path, key: str, world: _World, program: list[str]) -> NoReturn:
    """Wait for the other nodes' agents as c10d does; they are numbered as they come."""
    job = f"{os.environ.get('SLURM_JOB_ID')} {os.environ.get('SLURM_RESTART_COUNT', '0')} "
    folder = stage / "meetings" / hashlib.sha256((job + key).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    while True:
        try:
            descriptor = os.open(folder / str(number), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            number += 1
            continue
        os.write(descriptor, f"{_host()}\n".encode())
        os.close(descriptor)
        break
    if number >= world.nodes:
        _note(stage, "surplus", key=key, nodes=world.nodes, number=number)
        _wait_for_gate(stage)
        sys.exit(1)
    while not (folder / str(world.nodes - 1)).exists():
        if (stage / "give-up").exists():
            came = len(list(folder.iterdir()))
            _note(stage, "unmet", key=key, nodes=world.nodes, came=came)
            sys.stderr.write(f"rehearsal: {came} of {world.nodes} nodes met at {key}\n")
            sys.exit(1)
        time.sleep(0.05)
    while not (first := (folder / "0").read_text()):
        time.sleep(0.01)
    port = str(20_000 + int(folder.name[:6], 16) % 9000)
    _start(stage, world._replace_at(number, first.strip(), port), program)


def _accelerate(stage: Path, options: dict[str, str], program: list[str]) -> NoReturn:
    machines = _count(stage, options.get("num_machines", "1"), 1)
    total = _count(stage, options.get("num_processes", "auto"), _visible_gpus() * machines)
    rank = options.get("machine_rank", "0")
    port = options.get("main_process_port", "29500")
    _check_port(stage, port)
    world = _World(max(1, total // machines), machines)
    program = ["python3", *program[2:]]
    address = options.get("main_process_ip", "127.0.0.1")
    _start(stage, world._replace_at(int(rank) if rank.isdecimal() else 0, address, port), program)


def _deepspeed(stage: Path, options: dict[str, str], program: list[str]) -> NoReturn:
    """Its ranks on this node; those of other nodes it would start by ssh."""
    nodes = _count(stage, options.get("num_nodes", "1"), 1)
    hosts = options.get("hostfile", "/job/hostfile")
    if nodes > 1:
        _note(stage, "ssh", hostfile=hosts, exists=os.path.exists(hosts), nodes=nodes)
    nproc = _count(stage, options.get("num_gpus", "auto"), _visible_gpus())
    world = _World(nproc, nodes if nodes > 1 and "hostfile" in options else 1)
    port = options.get("master_port", "29500")
    _check_port(stage, port)
    _start(stage, world._replace_at(0, options.get("master_addr", "127.0.0.1"), port), program)


def _mpirun(stage: Path, options: dict[str, str], program: list[str]) -> NoReturn:
    """Its processes over the nodes of the job, as an MPI built for Slurm places them."""
    code = (
        "export OMPI_COMM_WORLD_RANK=$SLURM_PROCID OMPI_COMM_WORLD_SIZE=$SLURM_NTASKS "
        'OMPI_COMM_WORLD_LOCAL_RANK=$SLURM_LOCALID; exec "$@"'
    )
    count = ["-n", options["np"]] if options.get("np", "").isdecimal() else []
    _srun(stage, ["--overlap", *count, "sh", "-c", code, "sh", *program])


def _spawn(stage: Path, words: list[str]) -> NoReturn:
    """`python -m slurmgen.ddp` under launcher spawn, which forks its ranks."""
    env = os.environ
    nproc = int(env.get("LOCAL_WORLD_SIZE", "1"))
    world = _World(nproc, max(1, int(env.get("WORLD_SIZE", "1")) // nproc))
    node = int(env.get("SLURM_NODEID", env.get("NODE_RANK", "0")))
    _start(
        stage,
        world._replace_at(node, env.get("MASTER_ADDR", ""), env.get("MASTER_PORT", "")),
        words,
        torchrun=False,
        SLURMGEN_SPAWN_PARENT=str(os.getpid()),
    )


_RANK = "{LOCAL_RANK}"


class _World:
    """The ranks that one launcher starts among all."""

    def __init__(
        self, nproc: int, nodes: int, *, node: int = 0, address: str = "", port: str = ""
    ) -> None:
        self.nproc = nproc
        self.nodes = nodes
        self.node = node
        self.address = address
        self.port = port

    def _replace_at(self, node: int, address: str, port: str) -> _World:
        return _World(self.nproc, self.nodes, node=node, address=address, port=port)

    def variables(self, local_rank: int) -> dict[str, str]:
        rank = self.node * self.nproc + local_rank
        return {
            "RANK": str(rank),
            "LOCAL_RANK": str(local_rank),
            "WORLD_SIZE": str(self.nproc * self.nodes),
            "LOCAL_WORLD_SIZE": str(self.nproc),
            "GROUP_RANK": str(self.node),
            "GROUP_WORLD_SIZE": str(self.nodes),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": self.port,
        }


def _start(
    stage: Path, world: _World, program: Sequence[str], *, torchrun: bool = True, **more: str
) -> NoReturn:
    """Start this node's ranks, wait for them, and end as torchrun does: 1 where one failed."""
    if torchrun:
        more["TORCHELASTIC_RUN_ID"] = "none"
        more["TORCHELASTIC_RESTART_COUNT"] = "0"
        if world.nproc > 1 and "OMP_NUM_THREADS" not in os.environ:
            more["OMP_NUM_THREADS"] = "1"
    words = _stand_ins(stage, list(program))
    os.environ["PATH"] = _first_on_path(stage)
    more["SLURMGEN_REHEARSAL_LAUNCH"] = f"{os.getpid()} {world.nproc * world.nodes}"
    children = []
    for local_rank in range(world.nproc):
        environment = {**os.environ, **more, **world.variables(local_rank)}
        filled = [word.replace(_RANK, str(local_rank)) for word in words]
        children.append(_fork(filled, environment))
    failed = [status for child in children if (status := os.waitpid(child, 0)[1])]
    if not failed:
        sys.exit(0)
    # The status that asks for a requeue is every rank's, and the spawn launcher passes it on.
    same = os.waitstatus_to_exitcode(failed[0])
    sys.exit(same if not torchrun and same > 0 else 1)


def _fork(words: list[str], environment: Mapping[str, str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.execvpe(words[0], words, dict(environment))
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
    os._exit(127)


def _count(stage: Path, text: str, automatic: int) -> int:
    if text in ("auto", "gpu"):
        return max(1, automatic)
    if text == "cpu":
        return int(os.environ.get("SLURM_CPUS_ON_NODE", "1"))
    if not text.isdecimal():
        _fail(stage, f"the launcher can't read {text!r} as a number of processes")
    return int(text)


def _check_host(stage: Path, host: str) -> None:
    if any(character.isspace() for character in host):
        _fail(stage, f"{host!r} is no address to meet at")


def _check_port(stage: Path, port: str) -> None:
    if not port.isdecimal() or int(port) > 65_535:
        _fail(stage, f"{port} is not a port: they end at 65535")


def _visible_gpus() -> int:
    listed = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return len([gpu for gpu in listed.split(",") if gpu and gpu != "NoDevFiles"])


# --- containers and environments -----------------------------------------------------------


def _container(stage: Path, words: list[str]) -> NoReturn:
    name = words[0]
    at = 1 if name == "shifter" else 2
    if at == 2 and words[1:2] not in (["exec"], ["run"]):
        _note(stage, "helper", words=words)
        sys.exit(0)
    given = parse_options(_words(words[at:]), wrappers.CONTAINERS[name])
    rest = words[len(words) - len(given.rest) :]
    program = rest if name == "shifter" else rest[1:]
    _note(stage, "container", runtime=name, options=sorted(given.options), image=rest[:1])
    _become(stage, program)


def _runner(stage: Path, words: list[str]) -> NoReturn:
    if words[1:2] == ["run"]:
        rest = _rest(words[2:], wrappers.RUNNERS)
        if rest:
            _become(stage, rest)
    if words[0] in ("conda", "mamba", "micromamba"):
        _conda(stage, words)
    _note(stage, "helper", words=words)
    sys.exit(0)


_HOOK = (
    'conda() { case ${1-} in activate|deactivate) case $- in *u*) __note conda-nounset "$*";; '
    'esac; __note conda "$*";; *) command conda "$@";; esac; }\n'
)


def _conda(stage: Path, words: list[str]) -> NoReturn:
    if words[1:2] == ["shell.bash"] or words[1:3] == ["shell", "hook"]:
        sys.stdout.write(_HOOK.replace("conda", words[0]))
        sys.exit(0)
    if words[1:2] in (["activate"], ["deactivate"]):
        _note(stage, "conda-unready", words=words)
        sys.stderr.write("CondaError: Run 'conda init' before 'conda activate'\n")
        sys.exit(1)
    with suppress(OSError):
        os.execv(_real(stage, words[0]), words)
    if words[1:3] == ["info", "--base"]:
        sys.stdout.write("/opt/conda\n")
    _note(stage, "helper", words=words)
    sys.exit(0)


# --- the way on ----------------------------------------------------------------------------

# Wrappers that may not be installed here; the others run as they are.
_TRANSPARENT = frozenset("nsys ncu hpcrun xvfb-run numactl unbuffer catchsegv".split())


def _become(stage: Path, words: list[str]) -> NoReturn:
    if not words:
        _fail(stage, "nothing to start")
    os.environ["PATH"] = _first_on_path(stage)
    words = _stand_ins(stage, words)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        _fail(stage, f"{words[0]}: {error.strerror}")


def _rest(arguments: Sequence[str], grammar: Grammar) -> list[str]:
    given = parse_options(_words(arguments), grammar)
    return list(arguments[len(arguments) - len(given.rest) :])


def _words(texts: Sequence[str]) -> list[Word]:
    return [Word((Piece(TEXT, text, at, at),), at, at) for at, text in enumerate(texts)]


def _first_on_path(stage: Path) -> str:
    own = str(stage / "bin")
    others = [folder for folder in os.environ.get("PATH", "").split(":") if folder != own]
    return ":".join([own, *others])


def _real(stage: Path, name: str) -> str:
    own = str(stage / "bin")
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        path = os.path.join(folder, name)
        if folder != own and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(name)


def _host() -> str:
    return os.environ.get("SLURMD_NODENAME", "")


def _wait_for_gate(stage: Path) -> None:
    with open(stage / "gate", "rb") as gate:
        gate.read()


def _note(stage: Path, kind: str, **content: object) -> None:
    env = os.environ
    content |= {
        "kind": kind,
        "job": env.get("SLURM_JOB_ID", "0"),
        "restart": env.get("SLURM_RESTART_COUNT", "0"),
        "step": env.get("SLURM_STEP_ID", "batch"),
        "task": env.get("SLURM_PROCID", "0"),
        "node": _host(),
    }
    path = stage / "notes" / f"{time.time_ns()}-{os.getpid()}"
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(json.dumps(content))
    hidden.rename(path)


def _fail(stage: Path, message: str) -> NoReturn:
    _note(stage, "launcher-failed", message=message)
    sys.stderr.write(message + "\n")
    sys.exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
