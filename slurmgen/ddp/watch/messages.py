"""What supervisors may say to each other, field by field: anything else ends the connection.

A side that has proved itself is of this run, but it may be of another release, or broken; and a
value of the wrong kind must not end a training from within. No torch here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurmgen.ddp.watch.failures import KINDS, Failure
from slurmgen.ddp.watch.wire import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slurmgen.ddp.watch.wire import Message

    Check = Callable[[Any], bool]
    Schema = Mapping[str, Check]

_NAME = 256
_TEXT = 1 << 16


class OddError(Exception):
    """A message that no supervisor sends; the text says what is wrong with it."""


def _whole(low: int, high: int) -> Check:
    return lambda value: type(value) is int and low <= value <= high


def _text(most: int) -> Check:
    return lambda value: type(value) is str and len(value) <= most


def _lines(value: Any) -> bool:
    return type(value) is list and len(value) <= 64 and all(map(_text(_TEXT), value))


_ONE = _whole(1, 1)
_PORT = _whole(1, 65535)
_COUNT = _whole(0, 2**64 - 1)


class Language:
    """The messages of a run of `world_size` ranks.

    Each method returns the message in a line, with any failure in it as a Failure, or raises
    OddError.
    """

    def __init__(self, world_size: int) -> None:
        rank = _whole(0, world_size - 1)
        self._place: Schema = {
            "rank": rank,
            "node": _text(_NAME),
            "host": _text(_NAME),
            "local_rank": _whole(0, 65535),
        }
        self._failure: Schema = {
            **self._place,
            "kind": lambda value: value in KINDS,
            "status": _whole(0, 255),
            "text": _text(_TEXT),
            "signal": _text(_NAME),
            "secondary": lambda value: type(value) is bool,
            "steps": _COUNT,
            "time": _text(_NAME),
            "traceback": _text(_TEXT),
            "stderr": _lines,
        }
        self._of_peers: dict[str, Schema] = {
            "beat": {},
            "bye": {"ending": _ONE, "order": _whole(0, 255)},
            "failed": {},
            "hung": {},
            "stacks": {"steps": _COUNT},
        }
        self._of_hub: dict[str, Schema] = {
            "beat": {},
            "bye": {},
            "welcome": {"port": lambda value: value is None or _PORT(value)},
            "refused": {},
            "port": {},
            "end": {},
            "dump": {},
        }
        self._kinds: dict[str, Check] = {
            "beat": _ONE,
            "bye": _ONE,
            "dump": _ONE,
            "port": _PORT,
            "stacks": _text(_TEXT),
            "refused": _text(_NAME),
            "welcome": lambda value: _fits(value, self._place),
            "failed": self._is_failure,
            "hung": self._is_failure,
            "end": self._is_failure,
        }

    def guest(self, line: bytes) -> Message:
        """Who a side that has just proved itself is: any rank but 0."""
        message = parse(line)
        if message is None or not _fits(message, self._place) or message["rank"] == 0:
            raise OddError("it doesn't say which rank it is")
        return message

    def of_peer(self, line: bytes, rank: int) -> Message:
        """What the supervisor of `rank` says to the hub."""
        message = self._of(line, self._of_peers)
        for kind in ("failed", "hung"):
            if kind in message and message[kind].rank != rank:
                raise OddError(f"it speaks of the failure of rank {message[kind].rank}")
        return message

    def of_hub(self, line: bytes) -> Message:
        """What the hub says to any other."""
        return self._of(line, self._of_hub)

    def _of(self, line: bytes, kinds: dict[str, Schema]) -> Message:
        message = parse(line)
        if message is None:
            raise OddError("no message")
        kind = next((kind for kind in message if kind in kinds), None)
        if kind is None or not self._kinds[kind](message[kind]):
            raise OddError(f"no message: {line[:40]!r}")
        for name, value in message.items():
            if name != kind and not kinds[kind].get(name, _never)(value):
                raise OddError(f"{name} of {kind} is {str(value)[:40]!r}")
        if kind in {"failed", "hung", "end"}:
            message[kind] = Failure(**message[kind])
        if kind == "stacks" and "steps" not in message:
            raise OddError("stacks without steps")
        return message

    def _is_failure(self, value: Any) -> bool:
        return _fits(value, self._failure)


def _fits(value: Any, schema: Schema) -> bool:
    """Whether `value` has exactly the fields of `schema`, each as it has to be."""
    return (
        type(value) is dict
        and value.keys() == schema.keys()
        and all(check(value[name]) for name, check in schema.items())
    )


def _never(_: Any) -> bool:
    return False
