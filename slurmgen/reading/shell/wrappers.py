"""Programs that only start another one, and how each reads its options."""

from __future__ import annotations

from slurmgen.reading.shell.options import OPTIONAL, Grammar, table

# `NAME run [options] program`.
RUNNER_NAMES = frozenset("conda mamba micromamba uv poetry pipenv pixi hatch rye".split())
RUNNERS = Grammar(
    table(
        "name prefix cwd python with env-file extra group package project directory "
        "manifest-path environment frozen-env",
        "no-capture-output live-stream verbose quiet no-sync frozen locked isolated active "
        "no-project",
    ),
    {"n": "name", "p": "prefix", "e": "environment", "v": "verbose", "q": "quiet"},
)
ENV = Grammar(
    table("unset chdir split-string", "ignore-environment null"),
    {"u": "unset", "i": "ignore-environment", "C": "chdir", "S": "split-string", "0": "null"},
)
_NONE = Grammar({}, {})
# Wrappers that only start what follows: their options, and how many words of their own follow.
WRAPPERS: dict[str, Grammar] = {
    **dict.fromkeys(
        "nohup setsid command builtin catchsegv unbuffer sudo dumb-init tini".split(), _NONE
    ),
    "exec": Grammar(table("argv0", "clean login"), {"a": "argv0", "c": "clean", "l": "login"}),
    "time": Grammar(
        table("format output", "portability verbose append"),
        {"f": "format", "o": "output", "p": "portability", "v": "verbose", "a": "append"},
    ),
    "nice": Grammar(table("adjustment"), {"n": "adjustment"}),
    "ionice": Grammar(table("class classdata"), {"c": "class", "n": "classdata"}),
    "timeout": Grammar(
        table("signal kill-after", "foreground preserve-status verbose"),
        {"s": "signal", "k": "kill-after", "v": "verbose"},
    ),
    "stdbuf": Grammar(table("input output error"), {"i": "input", "o": "output", "e": "error"}),
    "numactl": Grammar(
        table("cpunodebind membind interleave physcpubind preferred cpubind shm", "localalloc all"),
        {
            "N": "cpunodebind",
            "m": "membind",
            "i": "interleave",
            "C": "physcpubind",
            "p": "preferred",
            "l": "localalloc",
            "a": "all",
            "c": "cpubind",
        },
    ),
    "taskset": Grammar(table("", "all-tasks cpu-list pid"), {"c": "cpu-list", "a": "all-tasks"}),
    "xvfb-run": Grammar(
        table("server-args server-num error-file", "auto-servernum"),
        {"s": "server-args", "n": "server-num", "a": "auto-servernum", "e": "error-file"},
    ),
    "nsys": Grammar(
        table("", "", ""), {"o": "output", "t": "trace", "f": "force", "w": "show", "y": "delay"}
    )._replace(
        long={
            "output": "required",
            "trace": "required",
            "force": "required",
            "show": "required",
            "delay": "required",
            "force-overwrite": OPTIONAL,
        }
    ),
    "ncu": Grammar(table("export set section metrics"), {"o": "export", "f": "force"}),
    "strace": Grammar(table("output trace"), {"o": "output", "e": "trace", "f": "follow"}),
    "hpcrun": Grammar(table("event output"), {"e": "event", "o": "output"}),
}
OPERANDS = {"timeout": 1, "taskset": 1}
_APPTAINER = Grammar(
    table(
        "bind env env-file home pwd cwd workdir scratch overlay app add-caps drop-caps "
        "fakeroot-dir apply-cgroups blkio-weight cpus memory mount nvccli-dir security network "
        "network-args hostname pem-path dns fusemount",
        "nv nvccli rocm cleanenv contain containall writable writable-tmpfs fakeroot userns ipc "
        "pid net no-home no-mount-home compat no-umask uts keep-privs no-privs no-init "
        "disable-cache unsquash no-eval sharens",
    )
    | {"no-mount": "required"},
    {
        "B": "bind",
        "H": "home",
        "S": "scratch",
        "W": "workdir",
        "o": "overlay",
        "e": "cleanenv",
        "c": "contain",
        "C": "containall",
        "w": "writable",
        "u": "userns",
        "i": "ipc",
        "p": "pid",
        "n": "net",
        "f": "fakeroot",
    },
)
_DOCKER = Grammar(
    table(
        "gpus volume env env-file name network workdir user mount shm-size ulimit ipc entrypoint "
        "device runtime cpus memory hostname publish label security-opt",
        "rm interactive tty detach privileged gpu mpi cuda-mpi openmpi-pmi2 nccl init",
    ),
    {
        "v": "volume",
        "e": "env",
        "w": "workdir",
        "u": "user",
        "i": "interactive",
        "t": "tty",
        "d": "detach",
        "p": "publish",
    },
)
_SHIFTER = Grammar(
    table("image volume module entrypoint env workdir user", "clearenv help verbose"),
    {"i": "image", "V": "volume", "m": "module", "e": "env", "w": "workdir", "v": "verbose"},
)
CONTAINERS = {
    "apptainer": _APPTAINER,
    "singularity": _APPTAINER,
    "docker": _DOCKER,
    "podman": _DOCKER,
    "podman-hpc": _DOCKER,
    "shifter": _SHIFTER,
}
