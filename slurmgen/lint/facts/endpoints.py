"""The hosts and ports at which ranks meet, wherever a job names them.

MASTER_ADDR and MASTER_PORT, options of the launchers, arguments of the training, and what its
Python program passes to `init_process_group` or writes into its environment.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.lint.facts.settings import settings
from slurmgen.lint.facts.tools import is_tool
from slurmgen.lint.facts.wording import cut_last
from slurmgen.lint.job import once
from slurmgen.reading.budget import spend
from slurmgen.reading.programs import alternatives, truth, walk
from slurmgen.reading.programs.distributed import groups
from slurmgen.reading.programs.values import joined
from slurmgen.reading.shell.starters import MPIRUN
from slurmgen.reading.shell.words import BATCH, TASK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from slurmgen.diagnostics import Place
    from slurmgen.lint.facts.python import Run
    from slurmgen.lint.facts.settings import Setting
    from slurmgen.lint.job import Job
    from slurmgen.reading.programs import Condition, Value
    from slurmgen.reading.shell.launch import Launch
    from slurmgen.reading.shell.words import Word

HOST = "host"
PORT = "port"

ADDRESS_VARIABLES = ("MASTER_ADDR", "MAIN_PROCESS_IP")
PORT_VARIABLES = ("MASTER_PORT", "MAIN_PROCESS_PORT")
_HOST_OPTIONS = ("master_addr", "main_process_ip")
_PORT_OPTIONS = ("master_port", "main_process_port")
# Arguments of training programs; `a.b.master_port=1` is Hydra's way.
_ARGUMENT = re.compile(
    r"(?:-{1,2}|\+{0,2}(?:\w+\.)*)(?P<name>master[_-]?addr(?:ess)?|master[_-]?port|"
    r"(?:dist|ddp|distributed)[_-](?:url|init[_-]method|port|addr)|init[_-]method|"
    r"main[_-]process[_-](?:ip|port)|rdzv[_-]endpoint)(?P<equals>=)?"
)
_URL = "tcp://"


class Endpoint(NamedTuple):
    """A host or a port, and the launch whose ranks are told it.

    word: where the script names it, value: where a Python program does; the other is None.
    name: of the variable or option. conditional: a branch may pass it by. conditions: the
    tests of the program that lead there.
    """

    kind: str
    name: str
    word: Word | None
    value: Value | None
    place: Place
    launch: Launch
    run: Run | None = None
    conditional: bool = False
    conditions: tuple[Condition, ...] = ()

    @property
    def literal(self) -> str | None:
        """The host or port where it is plain text, a default (`${PORT:-29500}`) included."""
        if self.word is not None:
            guess = self.word.guess
            return None if "$" in guess or "`" in guess else guess
        if self.value is None or not self.value.is_constant:
            return None
        literal = self.value.literal
        return None if literal is None or isinstance(literal, bool) else str(literal)


def endpoints(job: Job) -> tuple[Endpoint, ...]:
    """The hosts and ports at which the ranks of each launch meet, each place once a launch."""
    found = _endpoints(job)
    spend(len(found))
    return found


@once
def _endpoints(job: Job) -> tuple[Endpoint, ...]:
    found: dict[tuple[str, Place, int], Endpoint] = {}
    for endpoint in (*_of_settings(job), *_of_options(job), *_of_programs(job)):
        key = endpoint.kind, endpoint.place, id(endpoint.launch)
        found.setdefault(key, endpoint)
    return tuple(found.values())


def _of_settings(job: Job) -> Iterator[Endpoint]:
    for setting in settings(job):
        kind = _kind_of_variable(setting.name)
        if kind is None:
            continue
        for launch in setting.launches:
            if setting.run is not None:
                # The entrypoint's ranks meet at its own store, whatever the program writes.
                if not launch.entrypoint:
                    yield _of_setting(job, setting, kind, launch)
            # Launchers tell their workers another address, whatever the script exports.
            elif launch.launcher is None or launch.launcher.kind == MPIRUN:
                yield _of_setting(job, setting, kind, launch)


def _kind_of_variable(name: str) -> str | None:
    if name in ADDRESS_VARIABLES:
        return HOST
    return PORT if name in PORT_VARIABLES else None


def _of_setting(job: Job, setting: Setting, kind: str, launch: Launch) -> Endpoint:
    place = setting.place if setting.word is None else _place(job, setting.word, setting.place)
    conditions = setting.write.conditions if setting.write is not None else ()
    return Endpoint(
        kind,
        setting.name,
        setting.word,
        setting.value,
        place,
        launch,
        setting.run,
        setting.conditional,
        conditions,
    )


def _place(job: Job, word: Word, otherwise: Place) -> Place:
    """Where the value itself is written, be it in another variable."""
    if not word.pieces:
        return otherwise
    return job.place(word.pieces[0].start, word.pieces[-1].end)


def _of_options(job: Job) -> Iterator[Endpoint]:
    for launch in job.launches:
        if launch.where not in (BATCH, TASK) or is_tool(launch):
            continue
        for name, word in _options(launch):
            for kind, part in _parts(name, word):
                if part.pieces:
                    yield Endpoint(
                        kind, name, part, None, _place(job, part, job.place_of(word)), launch
                    )


def _options(launch: Launch) -> Iterator[tuple[str, Word]]:
    launcher = launch.launcher
    if launcher is not None:
        for name in (*_HOST_OPTIONS, *_PORT_OPTIONS, "rdzv_endpoint"):
            word = launcher.option(name)
            if word is not None:
                yield f"--{name}", word
    words = launch.words
    if launch.program == "ray" and any(word.text == "--head" for word in words):
        yield from _rays(words)
    for at, word in enumerate(words[1:], start=1):
        found = _ARGUMENT.match(word.text)
        if found is None:
            continue
        name = found["name"].replace("-", "_")
        if found["equals"]:
            yield name, word.after(found[0])
        elif found.end() == len(word.text) and word.text.startswith("-") and at + 1 < len(words):
            yield name, words[at + 1]


def _rays(words: Sequence[Word]) -> Iterator[tuple[str, Word]]:
    """The port of Ray's head."""
    for word, following in zip(words, (*words[1:], None), strict=True):
        if word.text.startswith("--port="):
            yield "--port", word.after("--port=")
        elif word.text == "--port" and following is not None:
            yield "--port", following


def _parts(name: str, word: Word) -> Iterator[tuple[str, Word]]:
    """The host and the port in an option's value."""
    bare = name.lstrip("-")
    if bare.endswith("port"):
        yield PORT, word
    elif bare.endswith(("url", "method")):
        if word.text.startswith(_URL):
            yield from _host_and_port(word.after(_URL))
    elif bare == "rdzv_endpoint":
        yield from _host_and_port(word)
    else:
        yield HOST, word


def _host_and_port(word: Word) -> Iterator[tuple[str, Word]]:
    host, port = cut_last(word, ":")
    yield HOST, host
    if port is not None:
        yield PORT, port


def _of_programs(job: Job) -> Iterator[Endpoint]:
    """What init_process_group and TCPStore are passed; writes are settings."""
    from slurmgen.lint.facts.python import runs

    for run in runs(job):
        program = run.program
        for group in () if run.launch.entrypoint else groups(program):
            if group.init_method is not None and run.reaches(group.call):
                for value in alternatives(run.settled(group.init_method), run.present):
                    for kind, part in _parts_of_url(value):
                        yield Endpoint(
                            kind,
                            "init_method",
                            None,
                            run.settled(part),
                            group.call.argument_place(1, "init_method"),
                            run.launch,
                            run,
                            False,
                            group.call.conditions,
                        )
        for call in program.called("torch.distributed.TCPStore"):
            given = (HOST, call.argument(0, "host_name")), (PORT, call.argument(1, "port"))
            for kind, part_or_none in given:
                if part_or_none is not None and run.reaches(call):
                    value = run.settled(part_or_none)
                    yield Endpoint(
                        kind, "TCPStore", None, value, call.place, run.launch, run, False,
                        call.conditions,
                    )  # fmt: skip


def _parts_of_url(value: Value) -> Iterator[tuple[str, Value]]:
    """Host and port of `tcp://host:port`, each a constant or what the program puts there."""
    pieces = list(value.parts) if value.kind == "format" else [value]
    first = pieces[0]
    if not first.is_constant or not str(first.literal).startswith(_URL):
        return
    pieces[0] = first._replace(literal=str(first.literal)[len(_URL) :])
    host: list[Value] = []
    port: list[Value] = []
    for piece in reversed(pieces):
        if host or not piece.is_constant or ":" not in str(piece.literal):
            (host if host else port).insert(0, piece)
            continue
        before, _, behind = str(piece.literal).rpartition(":")
        port.insert(0, piece._replace(literal=behind))
        host.insert(0, piece._replace(literal=before))
    if host:
        yield HOST, _joined(host)
        yield PORT, _joined(port)


def _joined(pieces: list[Value]) -> Value:
    kept = [piece for piece in pieces if not (piece.is_constant and piece.literal == "")]
    return kept[0] if len(kept) == 1 else joined(kept)


def own_host(value: Value) -> bool:
    """Whether a value is the name or address of the node that computes it."""
    if value.kind in ("call", "method", "item", "format", "attribute", "binary"):
        if value.kind == "call" and _OWN_HOST.fullmatch(value.name):
            return True
        if value.kind == "method" and value.name in ("bcast", "broadcast", "get", "join"):
            return False
        if value.kind == "call" and value.name.startswith(("subprocess.", "os.popen")):
            texts = [str(part.literal) for part in walk(value) if part.is_constant]
            return any(re.match(r"hostname\b", text) for text in texts)
        if value.kind == "call" and value.name not in _PASS_ON:
            return False
        return bool(value.parts) and any(own_host(part) for part in value.parts)
    return value.kind == "env" and value.name in ("SLURMD_NODENAME", "HOSTNAME", "HOST")


_OWN_HOST = re.compile(
    r"socket\.(gethostname|getfqdn)|platform\.node|os\.uname|(\w+\.)*get_?(own_?|local_?)?"
    r"(host_?(name|ip)|ip(_?addr(ess)?)?)"
)
_PASS_ON = frozenset({"socket.gethostbyname", "socket.getaddrinfo", "str", "socket.gethostbyaddr"})


def is_sure(job: Job, endpoint: Endpoint) -> bool:
    """Whether nothing else may give the same variable another value."""
    if not endpoint.conditional and endpoint.run is None:
        return True
    same = {e.place for e in endpoints(job) if e.name == endpoint.name and e.kind == endpoint.kind}
    if endpoint.run is None:
        return len(same) == 1 and _assigned(job, endpoint.name) <= 1
    unknown = [c for c in endpoint.conditions if truth(c.test, endpoint.run.present) is None]
    written = {write.place for write in endpoint.run.program.writes(endpoint.name)}
    return not unknown or len(written) <= 1


def _assigned(job: Job, name: str) -> int:
    """In how many places the script gives a variable a value."""
    return len({a.start for a in job.script.shell.assignments if a.name == name})


def places(those: Iterable[Endpoint]) -> list[Place]:
    """Where they stand, each once, those of the script before those of programs."""
    ordered = sorted(those, key=lambda e: (e.place.path or "", e.place.line, e.place.column))
    return list(dict.fromkeys(endpoint.place for endpoint in ordered))
