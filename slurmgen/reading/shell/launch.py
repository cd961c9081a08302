"""What a command of the script finally starts, its wrappers peeled off one by one.

`srun -n4 apptainer exec --nv x.sif bash -c 'torchrun … train.py'` is a Python program
under torchrun, in a shell, in a container, in each of four tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.shell import wrappers
from slurmgen.reading.shell.commands import Context
from slurmgen.reading.shell.evaluate import evaluate
from slurmgen.reading.shell.options import parse_options
from slurmgen.reading.shell.srun import SRUN, Step, step
from slurmgen.reading.shell.starters import MPIRUN, Launcher, read_launcher
from slurmgen.reading.shell.text import ShellText
from slurmgen.reading.shell.variables import Assignment, Variables
from slurmgen.reading.shell.words import BATCH, ELSEWHERE, TASK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from slurmgen.reading.shell.commands import Command, Redirect, ShellProgram
    from slurmgen.reading.shell.words import Word

_DEEPEST = 12
MOST_LAUNCHES = 4000
SHELLS = frozenset("bash sh dash zsh ksh ash".split())
ENTRYPOINT = "slurmgen.ddp"
"""`python -m` of it runs the program that it is given, after ranks and devices are set."""


class Container(NamedTuple):
    """A container and what it is started with.

    runtime: apptainer, singularity, pyxis, docker, podman-hpc, shifter… image: None where
    it isn't given here. opaque: some options are in a variable nobody knows.
    """

    runtime: str
    options: Mapping[str, Word]
    start: int
    end: int
    image: Word | None = None
    opaque: bool = False

    def option(self, *names: str) -> Word | None:
        """The value of the first of the options that is given."""
        return next((self.options[name] for name in names if name in self.options), None)


class Launch(NamedTuple):
    """A program that the script starts.

    command: of the batch script. inner: the simple command that names the program, another
    one than `command` inside `bash -c '…'`. where: BATCH, TASK or ELSEWHERE.
    wrappers: names of what was peeled, outermost first. words: the program and its
    arguments. python: the file that Python runs, where it is known; module: of `-m`.
    environment: variables set by the script which the program sees. mpirun: what starts the
    launcher (or the program) on several nodes in srun's place. script: one of the user's own that
    starts the program, and may set anything before. entrypoint: slurmgen.ddp runs the program.
    """

    command: Command
    inner: Command
    where: str
    wrappers: tuple[str, ...]
    step: Step | None
    launcher: Launcher | None
    container: Container | None
    words: tuple[Word, ...]
    is_python: bool
    python: str | None
    module: str | None
    environment: Mapping[str, Assignment]
    mpirun: Launcher | None = None
    script: str | None = None
    entrypoint: bool = False

    @property
    def program(self) -> str:
        """The program's name; "python" for whatever Python runs."""
        if self.is_python:
            return "python"
        return self.words[0].name if self.words else ""

    @property
    def start(self) -> int:
        """Where the first peeled word, or the program, stands in the script."""
        return self.inner.words[0].start if self.inner.words else self.inner.start

    @property
    def is_training(self) -> bool:
        """Whether it is a program of the user's own, in Python or under a launcher."""
        if self.launcher is not None and self.launcher.kind != MPIRUN:
            return True
        if not self.is_python:
            return False
        return self.python is not None or (
            self.module is not None and self.module.split(".")[0] not in _NOT_TRAINING
        )


_NOT_TRAINING = frozenset(
    "pip venv virtualenv http json pytest ipykernel jupyter jupyterlab notebook timeit "
    "compileall site sysconfig zipfile ensurepip conda torch.utils.collect_env pipx uv".split()
)


class _Peeled(NamedTuple):
    """How far the peeling of a command has come."""

    words: tuple[Word, ...]
    where: str
    environment: Mapping[str, Assignment]
    wrappers: tuple[str, ...] = ()
    step: Step | None = None
    launcher: Launcher | None = None
    container: Container | None = None
    is_python: bool = False
    mpirun: Launcher | None = None
    script: str | None = None
    entrypoint: bool = False

    def next(self, name: str, words: Sequence[Word]) -> _Peeled:
        return self._replace(words=tuple(words), wrappers=(*self.wrappers, name))


def launches(program: ShellProgram) -> tuple[Launch, ...]:
    """Every program that the commands start, shell builtins included.

    The call of a function is none: what it starts is among the commands.
    """
    found: list[Launch] = []
    for command in program.commands:
        if len(found) >= MOST_LAUNCHES:
            break
        if command.name in program.functions:
            continue
        start = _Peeled(command.words, command.where, command.environment)
        found += _peel(start, command, command, 0)
    return tuple(found)


def _peel(peeled: _Peeled, outer: Command, inner: Command, depth: int) -> Iterator[Launch]:
    for _ in range(_DEEPEST):
        words = peeled.words
        if not words or peeled.is_python:
            break
        name = words[0].name
        if name in SHELLS and depth < 4:
            code = _code(words[1:], inner.redirects if len(peeled.wrappers) < _DEEPEST else ())
            if code is not None:
                yield from _nested(code, peeled.next(name, ()), outer, depth)
                return
        further = _peel_one(peeled, name)
        if further is None:
            break
        peeled = further
    peeled = _entrypoint(peeled)
    python, module = _python(peeled)
    yield Launch(
        outer,
        inner,
        peeled.where,
        peeled.wrappers,
        peeled.step,
        peeled.launcher,
        peeled.container,
        peeled.words,
        peeled.is_python or python is not None or _is_python(peeled.words),
        python,
        module,
        peeled.environment,
        peeled.mpirun,
        peeled.script,
        peeled.entrypoint,
    )


_SHELL_OPTIONS = (("e", "errexit"), ("u", "nounset"))


class _Code(NamedTuple):
    text: ShellText
    positional: tuple[Word, ...]
    options: frozenset[str]


def _code(words: Sequence[Word], redirects: Sequence[Redirect]) -> _Code | None:
    """What a shell is given to run: the text behind -c, or a here-document."""
    options: set[str] = set()
    at = 0
    while at < len(words):
        text = words[at].text
        if text in ("-o", "+o", "-O") and at + 1 < len(words):
            options.add(words[at + 1].text)
            at += 2
            continue
        if text.startswith("-") and not text.startswith("--") and len(text) > 1:
            options |= {name for letter, name in _SHELL_OPTIONS if letter in text}
            if "o" in text and at + 1 < len(words):
                at += 1
                options.add(words[at].text)
            if "c" in text:
                at += 1
                # `bash -c -e '…'`
                while at < len(words) and words[at].text.startswith("-"):
                    at += 1
                if at >= len(words):
                    return None
                # The word behind the code is $0.
                return _Code(
                    ShellText.of_word(words[at]), tuple(words[at + 2 :]), frozenset(options)
                )
        elif not text.startswith("--"):
            break
        at += 1
    if at < len(words) and words[at].text not in ("-", "/dev/stdin"):
        return None
    for redirect in redirects:
        if redirect.body is not None:
            return _Code(redirect.body, tuple(words[at + 1 :]), frozenset(options))
    return None


def _nested(code: _Code, peeled: _Peeled, outer: Command, depth: int) -> Iterator[Launch]:
    """The programs started by the code of a shell in the shell."""
    context = outer.context._replace(where=peeled.where, function=None, handler=False)
    if peeled.where != outer.where:
        context = Context(peeled.where)
    inside = evaluate(
        code.text,
        where=peeled.where,
        variables=peeled.environment,
        positional=code.positional,
        options=code.options,
        context=context,
    )
    for command in inside.commands:
        start = peeled._replace(words=command.words, environment=command.environment)
        yield from _peel(start, outer, command, depth + 1)


def _peel_one(peeled: _Peeled, name: str) -> _Peeled | None:
    """One wrapper less; None where the words name the program itself."""
    words = peeled.words
    if name == "srun":
        given = parse_options(words[1:], SRUN)
        made = step(given.options, outer=peeled.step, opaque=given.opaque, word=words[0])
        container = peeled.container
        image = made.option("container-image")
        if image is not None or "container-name" in made.options or "container" in made.options:
            container = Container("pyxis", made.options, made.start, made.end, image, made.opaque)
        where = peeled.where if peeled.where == ELSEWHERE else TASK
        environment = _exported(peeled.environment, made)
        return peeled.next("srun", given.rest)._replace(
            where=where, step=made, container=container, environment=environment
        )
    started = read_launcher(words)
    if started is not None:
        where = TASK if peeled.where == BATCH and started.launcher.kind == MPIRUN else peeled.where
        launcher = started.launcher
        if peeled.launcher is not None and launcher.kind == MPIRUN:
            launcher = peeled.launcher
        # `mpirun torchrun` is still to be seen: the inner launcher counts, mpirun is a wrapper.
        mpirun = started.launcher if started.launcher.kind == MPIRUN else peeled.mpirun
        return peeled.next(started.launcher.kind, started.rest)._replace(
            where=where, launcher=launcher, is_python=started.is_python, mpirun=mpirun
        )
    if name in wrappers.CONTAINERS:
        return _container(peeled, name)
    if name == "env":
        return _env(peeled)
    if name in wrappers.RUNNER_NAMES:
        if len(words) < 3 or words[1].text != "run":
            return None
        given = parse_options(words[2:], wrappers.RUNNERS)
        return peeled.next(f"{name} run", given.rest) if given.rest else None
    grammar = wrappers.WRAPPERS.get(name)
    if grammar is None:
        return _script(peeled, name)
    given = parse_options(words[1:], grammar)
    rest = given.rest[wrappers.OPERANDS.get(name, 0) :]
    if name == "nsys":
        rest = tuple(parse_options(given.rest[1:], grammar).rest)
    return peeled.next(name, rest) if rest else None


def _entrypoint(peeled: _Peeled) -> _Peeled:
    """What `python -m slurmgen.ddp` runs, in its place; torchrun starts it by `-m`, too."""
    _, module = _python(peeled)
    if module != ENTRYPOINT:
        return peeled
    at = next(at for at, word in enumerate(peeled.words) if word.literal == ENTRYPOINT)
    rest = peeled.words[at + 1 :]
    if not rest:
        return peeled
    return peeled.next(ENTRYPOINT, rest)._replace(is_python=True, entrypoint=True)


def _script(peeled: _Peeled, name: str) -> _Peeled | None:
    """`./rank_env.sh python train.py`: a script that starts what it is given, we assume."""
    words = peeled.words
    if len(words) < 2 or not (name.endswith((".sh", ".bash")) or words[0].text.startswith("./")):
        return None
    if not _is_python_name(words[1].name) and read_launcher(words[1:]) is None:
        return None
    return peeled.next(name, words[1:])._replace(script=words[0].text)


def _exported(environment: Mapping[str, Assignment], made: Step) -> Mapping[str, Assignment]:
    """What srun's --export lets through."""
    export = made.option("export")
    text = export.literal if export is not None else None
    if text is None:
        return environment
    names = text.split(",")
    if "ALL" in names:
        return environment
    return {name: environment[name] for name in names if name in environment}


def _container(peeled: _Peeled, name: str) -> _Peeled | None:
    words = peeled.words
    at = 1
    if name != "shifter":
        if len(words) < 3 or words[1].text not in ("exec", "run", "shell"):
            return None
        at = 2
    given = parse_options(words[at:], wrappers.CONTAINERS[name])
    rest, opaque = given.rest, given.opaque
    if name == "shifter":
        image = given.options.get("image")
    elif opaque and rest and _starts(rest[0]):
        # `exec $SIF python x.py`: what stands before the program is the image.
        image, opaque = words[len(words) - len(rest) - 1], False
    else:
        image, rest = (rest[0] if rest else None), rest[1:]
    container = Container(name, given.options, words[0].start, words[at - 1].end, image, opaque)
    return peeled.next(name, rest)._replace(container=container)


def _starts(word: Word) -> bool:
    """Whether a word is the name of a program rather than of an image."""
    name = word.name
    return (
        _is_python_name(name)
        or name in SHELLS
        or name in wrappers.WRAPPERS
        or name in ("env", "torchrun", "accelerate", "deepspeed", "conda", "uv")
        or name.endswith((".py", ".sh"))
        or word.text.startswith("./")
    )


def _env(peeled: _Peeled) -> _Peeled | None:
    given = parse_options(peeled.words[1:], wrappers.ENV)
    rest = list(given.rest)
    cleared = "ignore-environment" in given.options
    environment = Variables(None if cleared else peeled.environment)
    while rest and "=" in rest[0].text.split("$")[0] and not rest[0].text.startswith("="):
        word = rest.pop(0)
        variable, _, _ = word.text.partition("=")
        environment = environment.but(variable, _assignment(variable, word, peeled.where))
    removed = given.options.get("unset")
    if removed is not None:
        environment = environment.but(removed.text, None)
    return peeled.next("env", rest)._replace(environment=environment) if rest else None


def _assignment(variable: str, word: Word, where: str) -> Assignment:
    value = word.after(variable + "=")
    return Assignment(variable, value, True, where, word.start, word.end)


def _is_python(words: Sequence[Word]) -> bool:
    return bool(words) and _is_python_name(words[0].name)


def _is_python_name(name: str) -> bool:
    stem = name.lower()
    return stem in ("pypy", "pypy3") or (
        stem.startswith("python") and not stem[6:].strip("0123456789.w")
    )


def _python(peeled: _Peeled) -> tuple[str | None, str | None]:
    """The file or the module that Python runs."""
    words = peeled.words
    if peeled.entrypoint:
        module, colon, _ = (words[0].literal or "").partition(":")
        return (None, module) if colon else (words[0].guess, None)
    if peeled.is_python:
        if not words:
            return None, None
        launcher = peeled.launcher
        if launcher is not None and {"module", "m"} & set(launcher.options):
            return None, words[0].literal
        return (words[0].guess if words[0].name.endswith(".py") else None), None
    if not words:
        return None, None
    if not _is_python(words):
        name = words[0].name
        return (words[0].guess if name.endswith(".py") else None), None
    at = 1
    while at < len(words):
        text = words[at].text
        if text == "-m":
            return None, words[at + 1].literal if at + 1 < len(words) else None
        if text in ("-c", "-"):
            return None, None
        if text in ("-W", "-X", "--check-hash-based-pycs"):
            at += 2
            continue
        if not text.startswith("-"):
            if words[at].pieces and words[at].pieces[0].kind != "text" and "/" not in text:
                return None, None
            return words[at].guess, None
        at += 1
    return None, None
