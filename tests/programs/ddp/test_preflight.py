from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.ddp.failure import LaunchError
from slurmgen.ddp.launch import preflight
from slurmgen.ddp.launch.identity import Identity, resolve_identity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Recorded = Callable[[str], dict[str, str]]


def identity(**changes: Any) -> Identity:
    place: dict[str, Any] = {
        "source": "slurm",
        "rank": 5,
        "local_rank": 1,
        "world_size": 8,
        "local_world_size": 4,
        "node_rank": 1,
        "nnodes": 2,
        "node": "n2",
        "job": "j",
    }
    return Identity(**{**place, **changes})


def test_a_good_launch_passes(recorded: Recorded) -> None:
    # Recorded where Slurm reaches the launching node by 127.0.0.1: all nodes are one machine.
    for rank in (0, 5):
        env = {
            **recorded(f"stepenv.{rank}"),
            "SLURMGEN_WORLD_SIZE": "8",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "12345",
        }
        preflight.check(resolve_identity(env), env)


def test_the_world_must_be_the_rendered_one() -> None:
    preflight.check_world(identity(), {})
    preflight.check_world(identity(), {"SLURMGEN_WORLD_SIZE": "8"})
    with pytest.raises(LaunchError, match="world size is 8, but the script was rendered for 16"):
        preflight.check_world(identity(), {"SLURMGEN_WORLD_SIZE": "16"})
    with pytest.raises(LaunchError, match=r"RANK 8 is outside 0\.\.7"):
        preflight.check_world(identity(rank=8), {})


@pytest.mark.parametrize("port", ["", "0", "65536", "-1", "port", "1e4"])
def test_a_port_that_is_none(port: str) -> None:
    with pytest.raises(LaunchError, match="MASTER_PORT"):
        preflight.master({"MASTER_ADDR": "n1", "MASTER_PORT": port})


def test_a_master_that_is_not_set() -> None:
    with pytest.raises(LaunchError, match="MASTER_ADDR is not set"):
        preflight.master({"MASTER_PORT": "12345"})


def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(LaunchError, match=r"MASTER_ADDR=no-such-node\.invalid doesn't resolve"):
        preflight.resolve("no-such-node.invalid", 12345, pause_s=0)
    with pytest.raises(LaunchError, match="doesn't resolve"):
        preflight.resolve("a" * 70 + ".invalid", 12345)


def test_a_resolver_that_asks_for_another_try_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [
        socket.gaierror(socket.EAI_AGAIN, "try again"),
        [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1%eth0", 1, 0, 2))],
    ]

    def answer(*_: object, **__: object) -> Any:
        given = answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    assert preflight.resolve("n1", 1, pause_s=0) == ["fe80::1"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.1.1", "::1", "localhost."])
def test_loopback_on_several_nodes(host: str) -> None:
    with pytest.raises(LaunchError, match="is this machine itself"):
        preflight.check_loopback(identity(node_rank=0), {}, host, ["127.0.0.1"])
    preflight.check_loopback(identity(nnodes=1), {}, host, ["127.0.0.1"])
    sandbox = {"SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1"}
    preflight.check_loopback(identity(), sandbox, host, ["127.0.0.1"])
    real = {"SLURM_LAUNCH_NODE_IPADDR": "10.0.0.1"}
    with pytest.raises(LaunchError):
        preflight.check_loopback(identity(), real, host, ["127.0.0.1"])


def test_a_node_may_find_its_own_name_as_loopback() -> None:
    preflight.check_loopback(identity(node_rank=0), {}, "n1", ["127.0.1.1"])
    with pytest.raises(LaunchError, match="is this machine itself"):
        preflight.check_loopback(identity(node_rank=1), {}, "n1", ["127.0.1.1"])


def test_the_master_must_be_on_the_node_of_rank_0() -> None:
    preflight.check_owned("n1", ["127.0.0.1"])
    # TEST-NET-1 (RFC 5737): no machine has such an address.
    preflight.check_owned("n1", ["192.0.2.1", "127.0.0.1"])
    with pytest.raises(LaunchError, match="isn't an address of"):
        preflight.check_owned("n1", ["192.0.2.1"])


@pytest.mark.parametrize("text", ["soon", "0", "-1", "inf", "nan"])
def test_a_timeout_that_is_none(text: str) -> None:
    with pytest.raises(LaunchError, match="SLURMGEN_RDZV_TIMEOUT"):
        preflight.rendezvous_timeout({"SLURMGEN_RDZV_TIMEOUT": text})


def test_timeout() -> None:
    assert preflight.rendezvous_timeout({}) == preflight.DEFAULT_TIMEOUT_S
    assert preflight.rendezvous_timeout({"SLURMGEN_RDZV_TIMEOUT": "2.5"}) == 2.5


def test_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "a:b.py").touch()
    monkeypatch.chdir(tmp_path)
    assert preflight.parse_target("train.py") is None
    assert preflight.parse_target("./a:b.py") is None
    assert preflight.parse_target("json.decoder:JSONDecoder.decode") == (
        "json.decoder",
        "JSONDecoder.decode",
    )
    with pytest.raises(LaunchError, match=r"no script absent\.py"):
        preflight.parse_target("absent.py")
    with pytest.raises(LaunchError, match="no module absent_module"):
        preflight.parse_target("absent_module.sub:main")
