"""Imports on real Slurm: sbatch reads the same, and programs see the same."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.importer import check, import_script
from slurmgen.jobfile.source import parse_yaml
from slurmgen.sandbox import Sandbox, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    [*ROOT.glob("tests/lint/*/*/job.sbatch"), *ROOT.glob("tests/golden/imports/*/job.sbatch")]
)
# What a job file's own launch writes out, and Slurm assumes.
DEFAULTS = {"job-name", "nodes", "ntasks-per-node"}


class Slurm:
    """A sandbox and a folder that its jobs run in."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.folder = folder
        self.environment = sandbox.environment()

    def sbatch(self, text: str, *options: str, folder: Path | None = None) -> str:
        """What sbatch says; the script's name is the same for every text."""
        folder = folder or self.folder
        path = folder / "job.sbatch"
        path.write_text(text, encoding="utf-8", newline="")
        done = subprocess.run(
            ["sbatch", *options, path.name],
            env=self.environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=120,
        )
        return done.stdout + done.stderr

    def read(self, text: str) -> list[str]:
        """The options as sbatch understood them, or why it did not."""
        answer = self.sbatch(text, "-vv", "--test-only")
        _, start, rest = answer.partition("sbatch: defined options\n")
        if not start:
            # Where in the script a fault stands is not the same.
            return sorted(set(re.sub(r"line \d+", "line", answer).splitlines()))
        shown, _, _ = rest.partition("sbatch: end of defined options\n")
        lines = [re.sub(r"\s+", " ", line.removeprefix("sbatch: ")) for line in shown.splitlines()]
        return sorted(line for line in lines if line and not line.startswith("---"))


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    folder = tmp_path_factory.mktemp("import")
    with Sandbox.up(name="import", shape=Shape(), directory=folder / "sandbox") as sandbox:
        yield Slurm(sandbox, folder)


def imported(text: str) -> tuple[str, dict[str, Any]]:
    """The rendered import of a script, and the data of the job file."""
    job = import_script(text, name="job.sbatch").text
    script = check.rendered(job)
    assert script is not None
    return script, parse_yaml(job, "job.yaml").data


def test_sbatch_reads_the_same_from_a_script_and_its_import(slurm: Slurm) -> None:
    different = []
    for path in SCRIPTS:
        text = path.read_bytes().decode()
        if not text.startswith("#!") or "\r\n" in text:
            # sbatch reads nothing from these, and a job file's script is in order.
            continue
        script, data = imported(text)
        before, after = slurm.read(text), slurm.read(script)
        if "script" not in data:
            added = set(after) - set(before)
            after = [
                line
                for line in after
                if line not in added or line.partition(" ")[0] not in DEFAULTS
            ]
        if slurm.sandbox.version >= "26.05":
            # The last of several counts. Up to 24.11, Slurm added them up, and so does the import.
            before, after = (
                [line for line in lines if not line.startswith("mail-type ")]
                for lines in (before, after)
            )
        if before != after:
            different.append((path.parent.name, sorted(set(before) ^ set(after))))
    assert different == []


# --- what the programs see ------------------------------------------------------------

# Writes its arguments and its environment into a file of its own.
STUB = r"""#!/usr/bin/env python3
import json, os, sys, uuid
seen = {"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}
with open(os.path.join(os.environ["SEEN"], uuid.uuid4().hex), "w") as file:
    json.dump(seen, file)
"""
# Of one job or process and no other.
VARYING = re.compile(
    r"SLURM_(JOBID|JOB_ID.*|JOB_START_TIME|JOB_END_TIME|JOB_NAME|TASK_PID|STEP.*|.*PORT|ARRAY_JOB_ID"
    r"|JOB_SLUID)"
    r"|_|SEEN"
)
# What the launch block of a job file sets besides.
LAUNCHED = re.compile(
    r"RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|NODE_RANK|MASTER_ADDR|MASTER_PORT"
    r"|OMP_NUM_THREADS|SLURMD?_.*|SRUN_.*|CUDA_.*|ROCR_.*|ZE_.*|GPU_DEVICE_ORDINAL"
)
# What a step has, or has otherwise, or a shell around the program.
STEP = re.compile(r"SLURM_.*|SHLVL|OLDPWD")

PLAIN = """#!/bin/bash
#SBATCH --job-name=plain
#SBATCH --cpus-per-task=2
#SBATCH --gres=gpu:1
export GREETING="it's \\$5, #1" DATA=${HOME}/data\\ set
export TABBED=$'a\\tb'
cd "$SLURM_SUBMIT_DIR"
echo starting
false
python3 ./stub.py --text 'a  "b" $HOME #c' "$GREETING" --glob *.py --id "$SLURM_JOB_NAME" \\
    {1..3} \\$x `echo y` $((1 + 1))
"""
RANKS = """#!/bin/bash
#SBATCH --job-name=ranks --nodes=2 --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=2
set -euo pipefail
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=29507
export NCCL_DEBUG=WARN
srun --cpus-per-task=2 python3 ./stub.py --port "$MASTER_PORT" --name "${SLURM_JOB_NAME}"
"""
STEPS = """#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --mem=1G
export A=1
stub() { srun --exact -n1 -c1 --mem=100M python3 ./stub.py "$@"; }
for i in 1 2; do
  stub --seed "$i" "two words" &
done
wait
python3 ./stub.py after
"""
ARGUMENTS = """#!/bin/bash -e
#SBATCH -n 1
name=${1:-none}
shift || true
exec python3 ./stub.py "$name" "$@" "$(basename "$PWD" | tr -d 0-9)"
"""
PYTHON = """#!/usr/bin/env python3
#SBATCH --ntasks=1
#SBATCH --time=5
import os, sys
os.environ["B"] = "é \\u00e9"
os.execv(sys.executable, [sys.executable, "./stub.py", "from python", *sys.argv[1:]])
"""
HEREDOC = """#!/bin/bash
#SBATCH --ntasks=1
cat > args.txt <<EOF
first $SLURM_NTASKS
#SBATCH --nodes=7
	tab \\$not
EOF
cat > more.txt <<'EOF'
$literal `as it is`
EOF
mapfile -t lines < args.txt
export JOINED="$(cat more.txt)"
python3 ./stub.py "${lines[@]}" 2>&1 | tee log.txt
"""
HETJOB = """#!/bin/bash
#SBATCH --ntasks=1 --job-name=het
#SBATCH hetjob
#SBATCH --ntasks=2
srun --het-group=0,1 python3 ./stub.py het
"""
ARRAY = """#!/bin/bash
#SBATCH --array=1-2
#SBATCH --cpus-per-task=1
#SBATCH --output=log-%A_%a
rates=(0 1e-3 3e-3)
export RATE=${rates[$SLURM_ARRAY_TASK_ID]}
srun python3 ./stub.py --rate "$RATE" "$SLURM_ARRAY_TASK_ID"
"""
CPUS = """#!/bin/bash
#SBATCH --job-name=cpus
#SBATCH --nodes=2
#SBATCH --ntasks=5
#SBATCH --ntasks-per-node=3
#SBATCH --cpus-per-task=1
srun python3 ./stub.py "ranks without GPUs"
"""
# No count of CPUs, locals, sbatch's arguments, and ranks of their own shell.
INNER = """#!/bin/bash -e
#SBATCH --nodes=2 --ntasks-per-node=2
#SBATCH --gres=gpu:2
lr=$(echo 1e-3) name="$1 $2"
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$(expr 20000 + $SLURM_JOB_ID % 9999)
export SEEN_BY=all
srun -l bash -c '
  export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
  cd ../here
  exec python3 ./stub.py --rank "$RANK" "$SEEN_BY" "$lr"'
"""
LOCALS = """#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=2
lr=$(echo 1e-3) name="it's $2"
shift
srun -u python3 ./stub.py --lr "$lr" --name "$name" "$@"
"""
BLOCK = """#!/bin/bash
#SBATCH --gres=gpu:1
set -u
rates=(1 '2 3')
show() { echo "at $1"; }
tmp=$(mktemp -d)
trap 'rm -r "$tmp"; python3 ./stub.py trapped' EXIT
for rate in "${rates[@]}"; do
    srun python3 ./stub.py --rate "$rate" "$@" | cat   # each
    show "$rate"
done
false | true
python3 ./stub.py behind &
wait $!
FLAG=1 python3 - > "$tmp/out" <<'EOF'
import sys, os
os.execv(sys.executable, [sys.executable, "./stub.py", os.environ["FLAG"]])
EOF
exit 0
"""
TORCHRUN = """#!/bin/bash
#SBATCH --job-name=torchrun --ntasks-per-node=1
#SBATCH --cpus-per-task=2
export OMP_NUM_THREADS=1
torchrun --standalone --nproc_per_node=2 stub.py --lr 1e-3 'a $b' "$SLURM_JOB_NAME" *.py
"""
# What starts each of them, None where the script is kept as it stands.
RUNS = {
    "plain": (PLAIN, "plain"),
    "ranks": (RANKS, "srun"),
    "cpus": (CPUS, "srun"),
    "array": (ARRAY, "plain"),
    "steps": (STEPS, None),
    "arguments": (ARGUMENTS, "plain"),
    "inner": (INNER, "srun"),
    "locals": (LOCALS, "srun"),
    "block": (BLOCK, "plain"),
    "python": (PYTHON, None),
    "heredoc": (HEREDOC, "plain"),
    "hetjob": (HETJOB, None),
}


def run(slurm: Slurm, text: str) -> list[Any]:
    """What each call of the stub saw, in a comparable order."""
    top = slurm.folder / f"run{len(list(slurm.folder.glob('run*')))}"
    folder, seen = top / "here", top / "seen"
    seen.mkdir(parents=True)
    folder.mkdir()
    (folder / "stub.py").write_text(STUB, encoding="utf-8")
    (folder / "job.sbatch").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["sbatch", "--wait", "job.sbatch", "one", "two words"],
        env={**slurm.environment, "SEEN": str(seen)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "Submitted" in done.stdout, done.stderr
    logs = [path for path in folder.iterdir() if path.name.startswith(("slurm", "log"))]
    calls = [json.loads(path.read_text(encoding="utf-8")) for path in seen.iterdir()]
    assert calls, "\n".join(path.read_text(errors="replace") for path in logs)
    for call in calls:
        call["cwd"] = Path(call["cwd"]).name
        call["env"] = {k: v.replace(str(top), "HERE") for k, v in call["env"].items()}
    return sorted(calls, key=_order)


def _order(call: dict[str, Any]) -> str:
    names = ("SLURM_ARRAY_TASK_ID", "SLURM_HET_GROUP_ID", "SLURM_PROCID")
    return json.dumps([call["argv"], *(call["env"].get(name, "") for name in names)])


@pytest.mark.torch
def test_torchrun_starts_the_same(slurm: Slurm) -> None:
    script, data = imported(TORCHRUN)
    assert data["launcher"] == "torchrun"
    before, after = run(slurm, TORCHRUN), run(slurm, script)
    assert len(before) == 2
    assert [call["argv"] for call in after] == [call["argv"] for call in before]
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS"):
        told = [sorted(call["env"][name] for call in calls) for calls in (before, after)]
        assert told[0] == told[1]


@pytest.mark.parametrize("name", RUNS)
def test_programs_see_the_same_from_a_script_and_its_import(slurm: Slurm, name: str) -> None:
    text, launcher = RUNS[name]
    script, data = imported(text)
    assert data.get("launcher") == launcher, data
    before, after = run(slurm, text), run(slurm, script)
    for what in ("argv", "cwd"):
        assert [call[what] for call in after] == [call[what] for call in before]
    for first, second in zip(before, after, strict=True):
        one, other = (_told(call["env"]) for call in (first, second))
        if launcher is not None:
            if "MASTER_PORT" not in str(data):
                # The launch block chooses it, and a note says so.
                one, other = (
                    {k: v for k, v in e.items() if k != "MASTER_PORT"} for e in (one, other)
                )
            # The launch block of a job file adds to them.
            assert [n for n in other.keys() - one.keys() if not LAUNCHED.fullmatch(n)] == []
            one, other = (
                {name: value for name, value in env.items() if not STEP.fullmatch(name)}
                for env in (one, {name: other[name] for name in one if name in other})
            )
        assert other == one


def _told(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not VARYING.fullmatch(name)}
