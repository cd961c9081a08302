"""The stand-ins by themselves, without a Slurm."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.sandbox.rehearsal import records
from slurmgen.sandbox.rehearsal.stage import Stage
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

# As in a job, where no interactive shell is around.
BASE = {"PATH": "/usr/bin:/bin", "HOME": "/"}


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage, stage.opened():
        stage.fill(real=False)
        stage.gate.close()
        yield stage


def run(stage: Stage, code: str, *, cwd: Path | None = None, **env: str) -> str:
    # A file, as a job has it: the other end of a pipe would be in this very process.
    log = stage.path / "log" / "out"
    with log.open("w") as file:
        subprocess.run(
            ["bash", "-c", code],
            env=stage.environment({**BASE, **env}),
            cwd=cwd,
            stdout=file,
            stderr=subprocess.STDOUT,
            timeout=30,
        )
    return log.read_text()


def seen(stage: Stage) -> list[list[str]]:
    return [list(program.argv) for program in records.read_programs(stage.path)]


def test_words_and_environment_arrive_to_the_byte(stage: Stage) -> None:
    run(stage, r"""A=$'x\n\xff' python train.py '' 'a b' $'\t' '$X' "é" """, B="", C="=a=")
    (program,) = records.read_programs(stage.path)
    assert program.argv == ("python", "train.py", "", "a b", "\t", "$X", "é")
    assert os.fsencode(program.env["A"]) == b"x\n\xff"
    assert (program.env["B"], program.env["C"]) == ("", "=a=")
    # Nothing of the rehearsal's own; the last three are what any bash adds.
    assert set(program.env) == {*BASE, "A", "B", "C", "PWD", "SHLVL", "_"}
    assert program.env["PATH"] == BASE["PATH"]
    assert program.ended


@pytest.mark.parametrize(
    "call",
    [
        "python train.py",
        "exec python train.py",
        "env X=1 python train.py",
        "timeout 5 python train.py",
        "nice python train.py",
        "bash -c 'python train.py'",
        "numactl bash -eo pipefail -c -- 'python train.py'",
        "numactl bash -c 'exec \"$@\"' name /opt/conda/bin/python train.py",
        "apptainer exec --nv -B /a:/b x.sif python train.py",
        "singularity exec x.sif bash -c 'exec python train.py'",
        "uv run python train.py",
        "conda run -n env python train.py",
        "numactl --cpunodebind=0 python train.py",
        "export PATH=/usr/local/bin:$PATH; exec python train.py",
        "export PATH=/usr/bin:/bin; exec python train.py",
        "exec /opt/conda/bin/python train.py",
        "A=1 exec /opt/conda/bin/python train.py",
        'V=/opt/v; exec "$V/bin/python" train.py',
        "bash -c 'B=$A exec /opt/conda/bin/python train.py'",
        "/opt/conda/bin/python train.py",
        'V=/opt/v; "$V/bin/python" train.py',
        'V=/opt/v; A="b c" "$V/bin/python" train.py | cat',
        "P=/opt/v/bin/python; $P train.py",
        'set -eu; P=/opt/v/bin/python; if "${P}" train.py; then :; fi',
        'f() { "$1/bin/python" train.py; }; f /opt/v',
        'V=/opt/v; X=1 nohup "$V/bin/python" train.py & wait',
        'IFS=:; V=/opt/v; if [[ -n $V ]]; then "$V/bin/python" train.py; fi',
        "exec env X=1 /opt/conda/bin/python train.py",
        "env X=1 timeout 5 /opt/conda/bin/python train.py",
        "/opt/conda/bin/conda run -n env python train.py",
    ],
)
def test_a_program_is_found_behind_anything(stage: Stage, call: str) -> None:
    run(stage, call)
    assert seen(stage) == [["python", "train.py"]]


def test_an_environment_that_is_there_does_not_hide_the_program(
    stage: Stage, tmp_path: Path
) -> None:
    bin_ = tmp_path / "venv" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / "python").write_text("#!/bin/sh\necho it ran\n")
    (bin_ / "python").chmod(0o755)
    (bin_ / "activate").write_text(f"PATH={bin_}:$PATH\nexport PATH\n")
    said = run(stage, "source venv/bin/activate; exec python train.py", cwd=tmp_path)
    assert said == ""
    assert seen(stage) == [["python", "train.py"]]
    (program,) = records.read_programs(stage.path)
    assert program.env["PATH"] == f"{bin_}:{BASE['PATH']}"


def test_what_only_a_cluster_has_is_noted(stage: Stage) -> None:
    said = run(
        stage,
        "set -e; module load cuda/12.4; source /opt/x/bin/activate; lfs quota; "
        'eval "$(conda shell.bash hook)"; conda activate e; echo done',
    )
    assert said == "done\n"
    noted = [(note.kind, note.content["text"]) for note in records.read_notes(stage.path)]
    assert noted == [
        ("module", "load cuda/12.4"),
        ("source", "/opt/x/bin/activate"),
        ("missing", "lfs quota"),
        ("conda", "activate e"),
    ]


def test_a_torn_command_fails_as_ever(stage: Stage) -> None:
    said = run(stage, "python train.py\n--lr 1; echo $?")
    assert "--lr: command not found" in said
    assert said.endswith("127\n")


def test_what_is_printed_into_a_variable_is_real(stage: Stage) -> None:
    """Only what a command substitution reads: `| tee` is a program like any other."""
    real = stage.path / "real-python"
    real.mkdir()
    (real / "python").write_text("#!/bin/sh\necho 12345\n")
    (real / "python").chmod(0o755)
    code = 'PORT=$(python port.py); echo "$PORT"; python train.py | cat; python log.py > >(cat)'
    said = run(stage, code, PATH=f"{real}:{BASE['PATH']}")
    assert said == "12345\n"
    assert sorted(seen(stage)) == [["python", "log.py"], ["python", "train.py"]]


def launched(stage: Stage, *names: str) -> list[tuple[str, ...]]:
    programs = records.read_programs(stage.path)
    return sorted(tuple(p.env.get(name, "") for name in names) for p in programs)


def test_torchrun_tells_each_rank_its_place(stage: Stage) -> None:
    run(
        stage,
        "torchrun --nnodes=2 --nproc-per-node=2 --node-rank=1 --master-addr=n1 "
        "--master-port=12345 train.py --lr '$$X'",
    )
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    assert launched(stage, *names) == [
        ("2", "0", "4", "n1", "12345"),
        ("3", "1", "4", "n1", "12345"),
    ]
    assert seen(stage)[0] == ["python3", "-u", "train.py", "--lr", "$X"]


def test_torchrun_starts_as_many_ranks_as_it_sees_gpus(stage: Stage) -> None:
    run(stage, "torchrun --standalone --nproc_per_node=gpu x.py", CUDA_VISIBLE_DEVICES="0,1,2")
    assert launched(stage, "RANK") == [("0",), ("1",), ("2",)]


def test_nodes_meet_at_one_endpoint(stage: Stage) -> None:
    call = "torchrun --nnodes=2 --nproc_per_node=1 --rdzv_backend=c10d --rdzv_endpoint=n1:1 x.py"
    run(stage, f"{call} & {call} & wait")
    assert launched(stage, "RANK", "WORLD_SIZE") == [("0", "2"), ("1", "2")]


def test_a_launcher_that_waits_in_vain_ends(stage: Stage) -> None:
    (stage.path / "give-up").touch()
    run(stage, "torchrun --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=n1:1 x.py")
    (note,) = [note for note in records.read_notes(stage.path) if note.kind == "unmet"]
    assert (note.content["nodes"], note.content["came"]) == (2, 1)


def test_a_number_of_processes_that_is_none(stage: Stage) -> None:
    said = run(stage, "torchrun --nproc_per_node='4(x2)' x.py; echo $?")
    assert "'4(x2)'" in said
    assert said.endswith("1\n")


def test_accelerate_and_the_old_launcher(stage: Stage) -> None:
    run(stage, "accelerate launch --num_machines 2 --num_processes 4 --machine_rank 1 x.py")
    run(stage, "python -m torch.distributed.launch --nproc_per_node=1 y.py")
    assert launched(stage, "RANK") == [("0",), ("2",), ("3",)]
    assert ["python", "-u", "y.py", "--local-rank=0"] in seen(stage)


def test_the_folder_goes_with_its_owner(stage: Stage) -> None:
    with Stage() as other:
        path = other.path
        assert path.is_dir()
    assert not path.exists()
    assert stage.path.is_dir()


def test_what_slurm_has_not_set_is_noted(stage: Stage) -> None:
    run(stage, "true\npython train.py $SLURM_A ${SLURM_B:-0} $SLURM_C", SLURM_C="set")
    noted = [
        (note.kind, str(note.content["text"]).partition(" ")[0], note.line)
        for note in records.read_notes(stage.path)
    ]
    assert noted == [("unset", "SLURM_A", 2), ("unset", "SLURM_B", 2)]


@pytest.mark.parametrize(
    "code",
    [
        "trap 'echo it' USR1; kill -USR1 $$",
        "trap -- 'echo it' EXIT SIGUSR1; kill -10 $$; trap - EXIT",
        "f() { echo it; }; trap f 10; kill -USR1 $$",
    ],
)
def test_a_trap_for_the_signal_tells_that_it_ran(code: str) -> None:
    with Stage() as stage, stage.opened():
        stage.fill(real=False, signal="USR1")
        assert run(stage, code) == "it\n"
        assert [note.kind for note in records.read_notes(stage.path)] == ["trapped"]
        run(stage, "trap '' USR1; kill -USR1 $$; trap 'echo' TERM; kill -TERM $$")
        assert len(records.read_notes(stage.path)) == 1


def test_a_program_tells_of_the_signal_and_waits_on() -> None:
    with Stage() as stage, stage.opened():
        stage.fill(real=False, signal="USR1")
        program = subprocess.Popen(
            ["python", "train.py"], executable=stage.bin / "python", env=stage.environment(BASE)
        )
        wait_until(lambda: len(os.listdir(stage.path / "records")) == 1)
        wait_until(lambda: bool(records.read_programs(stage.path)))
        program.send_signal(signal.SIGUSR1)
        wait_until(lambda: len(os.listdir(stage.path / "told")) == 1)
        assert program.poll() is None
        stage.gate.close()
        assert program.wait(10) == 0


def test_a_node_has_several_addresses(stage: Stage) -> None:
    name = os.uname().nodename
    lines = [line.split() for line in Path("/etc/hosts").read_text().splitlines()]
    address = next((words[0] for words in lines if name in words[1:]), None)
    if address is None:
        pytest.skip("this machine's name is not in /etc/hosts")
    assert run(stage, "hostname -I; hostname") == f"{address} 192.0.2.1 \n{name}\n"
