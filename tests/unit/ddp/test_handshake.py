"""The proof that two supervisors give each other, and what they may say afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slurmgen.ddp.failure import LaunchError
from slurmgen.ddp.launch.identity import resolve_identity
from slurmgen.ddp.watch.failures import Failure
from slurmgen.ddp.watch.handshake import Guest, Host, Stranger
from slurmgen.ddp.watch.messages import Language, OddError
from slurmgen.ddp.watch.secret import Token, secret_of

TOKEN = Token("job 7", 4, "5ec2e7" * 8)
PORT = 4711


def test_both_prove_themselves() -> None:
    guest, host = Guest(TOKEN, PORT), Host(TOKEN, PORT)
    answer = host.answer(guest.hello().rstrip())
    assert not host.proved
    assert host.answer(guest.answer(answer.rstrip()).rstrip()) == b""
    assert host.proved


@pytest.mark.parametrize(
    "other",
    [
        Token("job 7", 4, "0" * 48),
        Token("job 7", 4),
        Token("job 8", 4, TOKEN.secret),
        Token("job 7", 5, TOKEN.secret),
    ],
)
def test_another_secret_or_run_is_a_stranger(other: Token) -> None:
    guest, host = Guest(TOKEN, PORT), Host(other, PORT)
    with pytest.raises(Stranger):
        guest.answer(host.answer(guest.hello().rstrip()).rstrip())


def test_a_proof_is_for_one_port_one_side_and_once() -> None:
    guest, host = Guest(TOKEN, PORT), Host(TOKEN, PORT)
    hello = guest.hello().rstrip()
    answer = host.answer(hello).rstrip()
    proof = guest.answer(answer).rstrip()
    # Sent again to the same host.
    again = Host(TOKEN, PORT)
    again.answer(hello)
    with pytest.raises(Stranger):
        again.answer(proof)
    # The host's own, sent back.
    with pytest.raises(Stranger):
        host.answer(answer.split()[1])
    # Passed on by somebody who listens at another port.
    elsewhere = Guest(TOKEN, PORT + 1)
    with pytest.raises(Stranger):
        elsewhere.answer(Host(TOKEN, PORT).answer(elsewhere.hello().rstrip()).rstrip())


@pytest.mark.parametrize(
    "line", [b"", b"[" * 4000, b"slurmgen.ddp/2 xyz", b'{"nonce": 1}', b"\0", b"\xff" * 64]
)
def test_what_is_no_handshake(line: bytes) -> None:
    with pytest.raises(Stranger):
        Host(TOKEN, PORT).answer(line)
    with pytest.raises(Stranger):
        Guest(TOKEN, PORT).answer(line)


def test_the_secret_is_no_part_of_what_is_shown() -> None:
    assert TOKEN.secret not in repr(TOKEN)
    assert secret_of({"SLURMGEN_SECRET": " 3f" * 16 + "\n"}) == "3f" * 16
    assert secret_of({}) == ""
    with pytest.raises(LaunchError, match="has 5 characters"):
        secret_of({"SLURMGEN_SECRET": "guess"})
    env = {"SLURMGEN_SECRET": TOKEN.secret}
    assert Token.of(resolve_identity({}), env).secret == TOKEN.secret


PLACE = {"rank": 1, "node": "n", "host": "h", "local_rank": 0}
FAILURE = Failure(1, "n", "h", 0, "exit", 1, "x").dump()


def line(message: Any) -> bytes:
    return json.dumps(message).encode()


@pytest.mark.parametrize(
    "message",
    [
        {"beat": 1},
        {"bye": 1},
        {"order": 143, "bye": 1},
        {"ending": 1, "bye": 1},
        {"failed": FAILURE},
        {"hung": FAILURE},
        {"stacks": "x", "steps": 3},
    ],
)
def test_what_a_rank_says(message: dict[str, Any]) -> None:
    found = Language(4).of_peer(line(message), 1)
    assert found.keys() == message.keys()


@pytest.mark.parametrize(
    "message",
    [
        [],
        None,
        1,
        {},
        {"beat": True},
        {"beat": 1, "more": 1},
        {"bye": 1, "order": -1},
        {"bye": 1, "order": 10**100},
        {"failed": {}},
        {"failed": {**FAILURE, "rank": 2}},
        {"failed": {**FAILURE, "rank": 99}},
        {"failed": {**FAILURE, "rank": True}},
        {"failed": {**FAILURE, "status": "1"}},
        {"failed": {**FAILURE, "kind": []}},
        {"failed": {**FAILURE, "stderr": ["x"] * 1000}},
        {"failed": {**FAILURE, "steps": -1}},
        {"failed": {**FAILURE, "more": 1}},
        {"failed": None},
        {"stacks": "x"},
        {"stacks": 1, "steps": 1},
        {"stacks": "x", "steps": 1.5},
        {"end": FAILURE},
        {"port": 1},
    ],
)
def test_what_no_rank_says(message: Any) -> None:
    with pytest.raises(OddError):
        Language(4).of_peer(line(message), 1)


@pytest.mark.parametrize(
    "data", [b"[" * 200_000, b"\xff", b"{", b'{"beat": 1' + b"0" * 9999 + b"}"]
)
def test_what_is_no_message(data: bytes) -> None:
    for read in (lambda: Language(4).of_peer(data, 1), lambda: Language(4).of_hub(data)):
        with pytest.raises(OddError):
            read()


@pytest.mark.parametrize(
    "message",
    [
        {"welcome": {**PLACE, "rank": 0}, "port": None},
        {"welcome": {**PLACE, "rank": 0}, "port": 4711},
        {"refused": "twice"},
        {"port": 4711},
        {"end": FAILURE},
        {"dump": 1},
        {"bye": 1},
    ],
)
def test_what_the_hub_says(message: dict[str, Any]) -> None:
    assert Language(4).of_hub(line(message)).keys() == message.keys()


@pytest.mark.parametrize(
    "message",
    [
        {"port": 0},
        {"port": 65536},
        {"port": "1"},
        {"port": True},
        {"welcome": {}},
        {"welcome": {**PLACE, "rank": 4}, "port": 1},
        {"end": {**FAILURE, "rank": -1}},
        {"failed": FAILURE},
    ],
)
def test_what_no_hub_says(message: Any) -> None:
    with pytest.raises(OddError):
        Language(4).of_hub(line(message))


@pytest.mark.parametrize(
    "change", [{"rank": 0}, {"rank": 4}, {"rank": -1}, {"rank": 1.0}, {"node": 1}, {"x": 1}]
)
def test_who_no_guest_is(change: dict[str, Any]) -> None:
    assert Language(4).guest(line(PLACE)) == PLACE
    with pytest.raises(OddError):
        Language(4).guest(line({**PLACE, **change}))
