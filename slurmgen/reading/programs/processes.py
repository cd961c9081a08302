"""The signals a program handles, and the commands it runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.programs.facts import whole
from slurmgen.reading.programs.values import alternatives

if TYPE_CHECKING:
    from slurmgen.reading.programs.facts import Call
    from slurmgen.reading.programs.program import Program
    from slurmgen.reading.programs.values import Value


class Handler(NamedTuple):
    """A signal handler.

    names: the signals it may be set for, ``SIGUSR1``; none where they aren't known. is_default:
    it is SIG_DFL.
    """

    names: tuple[str, ...]
    is_default: bool
    call: Call


class Process(NamedTuple):
    """A command that the program runs; text: its words, ``{}`` for what isn't literal."""

    text: str
    call: Call


def handlers(program: Program) -> list[Handler]:
    """The signal handlers that are set."""
    found = []
    for call in program.calls:
        name = call.name
        if name == "signal.signal" or (call.method == "add_signal_handler" and not name):
            given = call.argument(0, "sig" if not name else "signalnum")
            handler = call.argument(1, "callback" if not name else "handler")
            is_default = handler is not None and handler.name == "signal.SIG_DFL"
            found.append(Handler(signal_names(given), is_default, call))
    return found


SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 10: "SIGUSR1", 12: "SIGUSR2", 15: "SIGTERM"}

SIGNALS |= {9: "SIGKILL", 14: "SIGALRM", 17: "SIGCHLD", 18: "SIGCONT", 23: "SIGURG"}


def signal_names(value: Value | None) -> tuple[str, ...]:
    """The signals that a value may be, ``SIGUSR1``; empty where one of them isn't known."""
    if value is None:
        return ()
    if value.kind == "iterate" and value.parts[0].kind == "tuple":
        items = list(value.parts[0].parts)
    else:
        items = list(alternatives(value))
    found = []
    for item in items:
        name = item.name.rpartition(".")[2]
        number = whole(item)
        if (item.kind == "item" and item.parts[1].is_constant) or (
            item.kind == "call" and item.name == "getattr" and len(item.parts) > 1
        ):
            name = str(item.parts[1].literal)
        if number in SIGNALS:
            name = SIGNALS[number]
        if not re.fullmatch(r"SIG[A-Z0-9]+", name):
            return ()
        found.append(name)
    return tuple(found)


_SHELLS = ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput")


def processes(program: Program) -> list[Process]:
    """The commands the program runs."""
    found = []
    for call in program.calls:
        known = call.name in _SHELLS or call.name.startswith(("subprocess.", "os.exec", "os.spawn"))
        if not known or not (call.args or call.keyword("args")):
            continue
        given = call.argument(0, "args" if call.name.startswith("subprocess.") else "cmd")
        if given is not None:
            found.append(Process(_words(given), call))
    return found


def _words(value: Value) -> str:
    if value.is_constant:
        return str(value.literal)
    if value.kind == "tuple":
        return " ".join(_words(part) for part in value.parts)
    if value.kind == "format":
        return "".join(_words(part) for part in value.parts)
    if value.kind == "method" and value.name in ("split", "strip"):
        return _words(value.parts[0])
    if value.kind == "call" and value.name == "shlex.split" and value.parts:
        return _words(value.parts[0])
    if value.kind == "binary" and value.name == "+":
        return " ".join(_words(part) for part in value.parts)
    return "{}"
