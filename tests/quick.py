"""What `make quick` loads: a test that starts a process, loads torch or connects fails.

Loaded by `-p tests.quick`. Tests of such things live in `tests/programs` and the folders that
`make quick` doesn't run.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

# Audit events of CPython (docs.python.org/3/library/audit_events.html). subprocess.Popen has its
# own event, whichever way the process is started then.
_PROCESSES = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"}
)
_NETWORK = frozenset(
    {"socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"}
)

_seen: list[str] = []
# What is done now that is held to it: a test, or the loading of all of them.
_current: list[str] = []


def _forbidden(event: str, args: tuple[Any, ...]) -> str:
    """What is not done in the quick tests, in words; empty for everything else."""
    if event in _PROCESSES:
        return f"starts a process ({event})"
    if event in _NETWORK:
        return f"connects ({event})"
    if event == "import" and str(args[0]).partition(".")[0] == "torch":
        return "loads torch"
    return ""


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if _current and (what := _forbidden(event, args)):
        _seen.append(what)
        # Of a kind that no `except Exception` swallows.
        pytest.fail(_message(what))


def _message(what: str) -> str:
    return f"{what}, which no test of `make quick` does; its place is below tests/programs"


def pytest_configure() -> None:
    # There is no way to remove one; outside a test it looks at nothing.
    sys.addaudithook(_watch)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    _current.append("the tests are loaded")
    try:
        return (yield)
    finally:
        _current.clear()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _current.append(item.nodeid)
    try:
        return (yield)
    finally:
        _current.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    _seen.clear()
    yield
    if _seen:  # and something has caught what told of it
        pytest.fail(_message(_seen[0]), pytrace=False)
