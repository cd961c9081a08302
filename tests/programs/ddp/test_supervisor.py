"""The supervisors of a run, with small programs in place of ranks: no torch here."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# All are of job 7: on another process's hub at the next port they would find themselves.
pytestmark = pytest.mark.xdist_group("supervisor")

ROOT = Path(__file__).parents[3]

# As entry.py and group.py do it: who is it, fork, meet; then the body of the test.
RANK = """
import os, signal, sys, time
from slurmgen.ddp import failure, log
from slurmgen.ddp.launch import fork, preflight, signals
from slurmgen.ddp.watch import supervised
from slurmgen.ddp.launch.identity import resolve_identity

identity = resolve_identity(os.environ)
log.speak_as(identity.rank)
if signals.asked_for(os.environ):
    signals.install(os.environ)
fork.divide(identity, os.environ)
desk, rank = supervised.desk(), identity.rank
try:
    if identity.world_size > 1 and rank == 0:
        desk.announce(4711)
    elif identity.world_size > 1:
        assert desk.store_port(preflight.rendezvous_timeout(os.environ)) == 4711
except failure.LaunchError as error:
    log.refuse(error)
    supervised.failed(78, error.what, secondary=False)
    sys.exit(78)
open(f"{os.environ['SLURM_JOB_ID']}-ready{rank}", "w").write(str(os.getpid()))
supervised.progress()
"""


class Ended(NamedTuple):
    """How a supervisor ended, and what came out of it on stderr."""

    code: int
    err: str


class Run:
    """The ranks of one step, all on this machine."""

    def __init__(self, folder: Path, stack: ExitStack, body: str, env: dict[str, str]) -> None:
        self.folder, self.job = folder, env["SLURM_JOB_ID"]
        self.size = int(env["SLURM_STEP_NUM_TASKS"])
        self.program = folder / f"rank{self.job}.py"
        self.program.write_text(RANK + body)
        self.env, self._stack = env, stack
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, rank: int, **more: str) -> subprocess.Popen[bytes]:
        env = {**self.env, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), **more}
        err = self.folder / f"{self.job}-err{len(self.processes)}"
        with err.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, str(self.program)],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **env},
                cwd=self.folder,
                stderr=file,
            )
        self._stack.callback(_kill, process)
        self.processes.append(process)
        return process

    def rank_pid(self, rank: int) -> int:
        """Waits until the rank has met the others."""
        ready = self.folder / f"{self.job}-ready{rank}"
        wait_until(lambda: ready.exists() and ready.read_text() != "")
        return int(ready.read_text())

    def end(self) -> list[Ended]:
        codes = [process.wait(PATIENCE_S) for process in self.processes]
        errors = [self.folder / f"{self.job}-err{number}" for number in range(len(codes))]
        return [Ended(code, err.read_text()) for code, err in zip(codes, errors, strict=True)]

    @property
    def failure(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / f"{self.job}.json").read_text())
        return found


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """`launch(body, size)`: ranks that meet and then run `body`, in which `rank` is known."""
    with ExitStack() as stack:

        def start(body: str, size: int, *, job: str = "7", ranks: Any = None, **more: str) -> Run:
            env = {
                "SLURM_JOB_ID": job,
                "SLURM_STEP_ID": "0",
                "SLURM_STEP_NUM_TASKS": str(size),
                "SLURM_STEP_NUM_NODES": "1",
                "SLURM_STEP_TASKS_PER_NODE": str(size),
                "SLURM_NODEID": "0",
                "SLURMD_NODENAME": "n1",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(free_port()),
                "SLURMGEN_FAILURE": str(tmp_path / f"{job}.json"),
                "SLURMGEN_SECRET": "5ec2e7" * 8,
                **more,
            }
            run = Run(tmp_path, stack, body, env)
            for rank in range(size) if ranks is None else ranks:
                run.start(rank)
            return run

        yield start


@pytest.mark.parametrize("statement", ["os._exit(0)", "os._exit(75)", "sys.exit()"])
def test_a_run_that_ends_well_leaves_nothing(launch: Callable[..., Run], statement: str) -> None:
    run = launch(statement, 3)
    code = 75 if "75" in statement else 0
    assert [(e.code, e.err) for e in run.end()] == [(code, "")] * 3
    assert not (run.folder / "7.json").exists()


@pytest.mark.parametrize(
    ("statement", "code"), [("sys.exit(3)", 3), ("os._exit(255)", 255), ("os.abort()", -6)]
)
def test_a_single_process_ends_as_its_program(
    launch: Callable[..., Run], statement: str, code: int
) -> None:
    run = launch(statement, 1)
    assert run.end()[0].code == code
    assert run.failure["first"]["status"] == (code if code > 0 else 128 - code)


@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_rank_ends_the_others_with_its_status(
    launch: Callable[..., Run], victim: int
) -> None:
    run = launch("time.sleep(300)", 3)
    for rank in range(3):
        run.rank_pid(rank)
    os.kill(run.rank_pid(victim), signal.SIGKILL)
    ended = run.end()
    assert [e.code for e in ended] == [-9 if rank == victim else 137 for rank in range(3)]
    said = f"first failure: rank {victim} on n1 (local rank {victim}): killed by signal 9 (KILL;"
    assert [said in e.err for e in ended] == [True, False, False]
    first = run.failure["first"]
    assert (first["rank"], first["kind"], first["signal"]) == (victim, "signal", "KILL")
    assert (first["host"], run.failure["world_size"]) == (socket.gethostname(), 3)


def test_an_abort_after_the_program_has_ended_is_not_the_failure(
    launch: Callable[..., Run],
) -> None:
    """As of gloo's and NCCL's threads, while Python tidies up after an exception."""
    run = launch(
        "if rank == 1:\n"
        "    supervised.failed(3, 'Traceback ...\\nKeyError: 7\\n', secondary=False)\n"
        "    os.abort()\n"
        "time.sleep(300)\n",
        2,
    )
    assert [e.code for e in run.end()] == [3, 3]
    first = run.failure["first"]
    assert (first["rank"], first["kind"], first["status"]) == (1, "exception", 3)


@pytest.mark.parametrize("status", [0, 75])
def test_an_abort_after_all_is_done_changes_no_status(
    launch: Callable[..., Run], status: int
) -> None:
    """A job that has saved must come back, and one that has ended well has."""
    run = launch(f"supervised.ended({status})\nif rank == 1: os.abort()\nsys.exit({status})\n", 2)
    ended = run.end()
    assert [e.code for e in ended] == [status, status]
    assert f"ended with status {status}, which counts; then ABRT" in ended[1].err
    assert not (run.folder / "7.json").exists()


def test_the_cause_comes_before_what_it_caused(launch: Callable[..., Run]) -> None:
    run = launch(
        "if rank == 1:\n"
        "    print('RuntimeError: Connection closed by peer', file=sys.stderr)\n"
        "    sys.exit(1)\n"
        "while rank == 2 and os.path.exists('7-wait'): time.sleep(0.02)\n"
        "if rank == 2: sys.exit(3)\n"
        "time.sleep(300)\n",
        3,
        ranks=(),
    )
    (run.folder / "7-wait").touch()
    for rank in range(3):
        run.start(rank)
    pid = run.rank_pid(1)
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
    # Its supervisor has seen that it ended, and now tells rank 0's, which nothing shows here.
    time.sleep(1)
    (run.folder / "7-wait").unlink()
    assert [e.code for e in run.end()] == [3, 3, 3]
    assert run.failure["first"]["rank"] == 2
    assert [other["rank"] for other in run.failure["others"]] == [1]


def test_what_the_rank_raised_is_in_the_file(launch: Callable[..., Run]) -> None:
    run = launch(
        "if rank == 1:\n"
        "    print('no such column', file=sys.stderr)\n"
        "    supervised.failed(1, 'Traceback ...\\nKeyError: 7\\n', secondary=False)\n"
        "    sys.exit(1)\n"
        "time.sleep(300)\n",
        2,
    )
    ended = run.end()
    assert [e.code for e in ended] == [1, 1]
    assert "(local rank 1): ended with exit code 1: KeyError: 7\n" in ended[0].err
    first = run.failure["first"]
    assert (first["kind"], first["traceback"]) == ("exception", "Traceback ...\nKeyError: 7\n")
    assert first["stderr"] == ["no such column"]


def test_a_file_of_an_earlier_run_is_removed(launch: Callable[..., Run]) -> None:
    run = launch("", 1, ranks=())
    (run.folder / "7.json").write_text("old")
    run.start(0)
    run.end()
    assert not (run.folder / "7.json").exists()


def test_a_supervisor_that_is_gone_takes_its_rank_along(launch: Callable[..., Run]) -> None:
    run = launch("time.sleep(300)", 3)
    pids = [run.rank_pid(rank) for rank in range(3)]
    run.processes[2].kill()
    assert [e.code for e in run.end()] == [69, 69, -9]
    assert run.failure["first"]["kind"] == "lost"
    wait_until(lambda: not os.path.exists(f"/proc/{pids[2]}"))


def test_survivors_of_rank_0_say_so(launch: Callable[..., Run]) -> None:
    run = launch("time.sleep(300)", 3)
    for rank in range(3):
        run.rank_pid(rank)
    run.processes[0].kill()
    ended = run.end()
    assert [e.code for e in ended] == [-9, 69, 69]
    assert all("lost contact with rank 0 on n1: its connection ended" in e.err for e in ended[1:])
    assert sum("first failure: rank 0 on n1" in e.err for e in ended) == 1
    assert run.failure["first"]["kind"] == "lost"


@pytest.mark.parametrize("stopped", [0, 1])
def test_a_silent_node_is_lost(launch: Callable[..., Run], stopped: int) -> None:
    run = launch("time.sleep(300)", 3, SLURMGEN_LOST_S="3")
    for rank in range(3):
        run.rank_pid(rank)
    run.processes[stopped].send_signal(signal.SIGSTOP)
    for number, process in enumerate(run.processes):
        if number != stopped:
            assert process.wait(PATIENCE_S) == 69
    run.processes[stopped].kill()
    assert (run.failure["first"]["rank"], run.failure["first"]["status"]) == (stopped, 69)
    assert "silent for 3 s" in run.failure["first"]["text"]


def test_a_hang_is_noticed_and_shown(launch: Callable[..., Run]) -> None:
    run = launch(
        "def stuck():\n"
        "    time.sleep(300)  # here\n"
        "def others_wait():\n"
        "    time.sleep(300)\n"
        "stuck() if rank == 1 else others_wait()\n",
        3,
        SLURMGEN_HANG_S="2",
    )
    ended = run.end()
    assert [e.code for e in ended] == [1, 1, 1]
    first = run.failure["first"]
    assert (first["rank"], first["kind"]) == (1, "hang")
    line = run.program.read_text().splitlines().index("    time.sleep(300)  # here") + 1
    assert f'rank7.py", line {line} in stuck' in first["traceback"]
    assert [group["ranks"] for group in run.failure["stacks"]] == [[0, 2], [1]]
    assert f"line {line} in stuck" in ended[1].err


NOTED = "signal.signal({name}, lambda *_: open('7-got', 'a').write('x'))\n"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1"])
@pytest.mark.parametrize("to", ["both", "the supervisor", "the rank"])
def test_a_signal_reaches_the_rank_once(launch: Callable[..., Run], name: str, to: str) -> None:
    body = NOTED.format(name=f"signal.{name}") + "open('7-noting', 'w')\n"
    run = launch(body + "while not os.path.exists('7-end'): time.sleep(0.02)", 1)
    wait_until((run.folder / "7-noting").exists)
    number = signal.Signals[name]
    if to != "the rank":
        run.processes[0].send_signal(number)
    if to != "the supervisor":
        os.kill(run.rank_pid(0), number)
    wait_until((run.folder / "7-got").exists)
    # Longer than the supervisor waits before it passes a signal on.
    time.sleep(1.5)
    (run.folder / "7-end").touch()
    assert run.end()[0].code == 0
    assert (run.folder / "7-got").read_text() == "x"


def test_a_cancelled_run_has_not_failed(launch: Callable[..., Run]) -> None:
    run = launch("time.sleep(300)", 3)
    pids = [run.rank_pid(rank) for rank in range(3)]
    for process, pid in zip(run.processes, pids, strict=True):
        os.kill(pid, signal.SIGTERM)
        process.terminate()
    assert [(e.code, e.err) for e in run.end()] == [(-15, "")] * 3
    assert not (run.folder / "7.json").exists()


@contextmanager
def holding(port: int, answer: bytes | None) -> Iterator[None]:
    """A foreign program on `port`: one that never speaks, or one that says `answer` to all."""
    import threading

    server = socket.create_server(("127.0.0.1", port))

    def talk() -> None:
        with ExitStack() as stack:
            while True:
                try:
                    sock, _ = server.accept()
                except OSError:
                    return
                stack.enter_context(sock)
                if answer is not None:
                    sock.sendall(answer)

    thread = threading.Thread(target=talk)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


@pytest.mark.parametrize("answer", [None, b"SSH-2.0-OpenSSH\r\n", b'{"proof": "mine"}\n'])
def test_a_foreign_program_on_the_port_is_passed_by(
    launch: Callable[..., Run], answer: bytes | None
) -> None:
    port = free_port()
    with holding(port, answer):
        run = launch("", 2, MASTER_PORT=str(port))
        assert [(e.code, e.err) for e in run.end()] == [(0, "")] * 2


def test_three_runs_with_one_port_do_not_meet(launch: Callable[..., Run]) -> None:
    port = str(free_port())
    body = "while not os.path.exists('all'): time.sleep(0.02)\n"
    # Ranks 1 first, so that each finds the hubs of others while its own isn't there yet.
    runs = [launch(body, 2, job=job, MASTER_PORT=port, ranks=(1,)) for job in ("71", "72", "73")]
    for run in reversed(runs):
        run.start(0)
    for run in runs:
        run.rank_pid(1)
    (runs[0].folder / "all").touch()
    assert [[e.code for e in run.end()] for run in runs] == [[0, 0]] * 3


def test_reserved_ports_are_used(launch: Callable[..., Run]) -> None:
    port = free_port()
    with holding(port, None):
        spare = free_port()
        run = launch("", 2, MASTER_PORT="1", SLURM_STEP_RESV_PORTS=f"{port},{spare}")
        assert [e.code for e in run.end()] == [0, 0]


@pytest.mark.parametrize("rank", [0, 1])
def test_the_same_rank_twice(launch: Callable[..., Run], rank: int) -> None:
    run = launch("while not os.path.exists('all'): time.sleep(0.02)", 2)
    run.rank_pid(1)
    run.start(rank).wait(PATIENCE_S)
    (run.folder / "all").touch()
    first, second, third = run.end()
    assert (first.code, second.code, third.code) == (0, 0, 78)
    assert f"error: rank {rank} arrived twice at 127.0.0.1" in third.err


def test_rank_0_is_missing(launch: Callable[..., Run]) -> None:
    run = launch("", 2, ranks=(1,), SLURMGEN_RDZV_TIMEOUT="1")
    (ended,) = run.end()
    assert ended.code == 78
    assert "error: rank 0 doesn't listen at 127.0.0.1:" in ended.err


def test_another_run_is_told_nothing(launch: Callable[..., Run]) -> None:
    port = str(free_port())
    other = launch("while not os.path.exists('all'): time.sleep(0.02)", 2, MASTER_PORT=port)
    other.rank_pid(1)
    run = launch("", 2, job="8", ranks=(1,), MASTER_PORT=port, SLURMGEN_RDZV_TIMEOUT="1")
    (ended,) = run.end()
    (other.folder / "all").touch()
    assert [e.code for e in other.end()] == [0, 0]
    assert ended.code == 78
    assert "isn't rank 0 of this run" in ended.err
    assert "job 7" not in ended.err


def test_stderr_is_passed_on_byte_by_byte(launch: Callable[..., Run]) -> None:
    body = (
        "for number in range(1600):\n"
        "    os.write(2, bytes([number % 256]) * 65536)\n"
        "os.write(2, b'no newline at the end')\n"
    )
    run = launch(body, 1)
    assert run.processes[0].wait(PATIENCE_S) == 0
    expected = b"".join(bytes([n % 256]) * 65536 for n in range(1600)) + b"no newline at the end"
    assert (run.folder / "7-err0").read_bytes() == expected


def start_alone(run: Run, stderr: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(run.program)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **run.env, "SLURM_PROCID": "0"},
        cwd=run.folder,
        stderr=stderr,
    )


def test_a_slow_reader_gets_everything(launch: Callable[..., Run]) -> None:
    run = launch("for _ in range(80): os.write(2, b'x' * 65536)", 1, ranks=(), SLURM_LOCALID="0")
    reading, writing = os.pipe()
    process = start_alone(run, writing)
    os.close(writing)
    with closing(os.fdopen(reading, "rb")) as pipe:
        assert len(pipe.read()) == 80 * 65536
    assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("closed", [True, False])
def test_a_reader_that_is_gone_or_stuck_holds_nobody_up(
    launch: Callable[..., Run], closed: bool
) -> None:
    run = launch("for _ in range(80): os.write(2, b'x' * 65536)", 1, ranks=(), SLURM_LOCALID="0")
    reading, writing = os.pipe()
    if closed:
        os.close(reading)
    process = start_alone(run, writing)
    assert process.wait(PATIENCE_S) == 0
    os.close(writing)
    if not closed:
        os.close(reading)
