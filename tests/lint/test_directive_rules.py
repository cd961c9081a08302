"""The rules about directives and requests: many spellings of each fault, and what is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmgen.cluster.profile import Gpus, NodeType, Partition, Profile
from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint import engine, fixes, registry
from slurmgen.lint.job import load
from slurmgen.slurm.options import catalog

if TYPE_CHECKING:
    from pathlib import Path

    from slurmgen.diagnostics import Diagnostic

OURS = tuple(
    rule
    for rule in registry.rules()
    if rule.code.startswith("SG1") or rule.code in ("SG201", "SG202", "SG203", "SG205", "SG207")
)


def lint(
    text: str,
    slurm: str | None = None,
    profile: Profile | None = None,
    folder: Path | None = None,
) -> tuple[Diagnostic, ...]:
    job = load("job.sbatch", text, slurm=slurm, profile=profile, folder=folder)
    outcome = engine.check(job, OURS)
    for failure in outcome.failures:
        raise failure.error
    return outcome.diagnostics


def script(*lines: str, command: str = "srun ./simulate") -> str:
    return "\n".join(["#!/bin/bash", *lines, command, ""])


def found(text: str, slurm: str | None = None) -> list[tuple[str, str]]:
    return [(d.rule, d.severity) for d in lint(text, slurm)]


def mended(text: str) -> str:
    return fixes.fixed(text, lint, lambda _: 0)


# Lines of directives in front of a command, and the one finding about them.
FAULTS = {
    "directive-after-command": [
        ("set -e\n#SBATCH --nodes=2", ERROR),
        ("module load cuda\n#SBATCH --gres=gpu:1", ERROR),
        ("export A=1\n#SBATCH -n4", ERROR),
        ("cd /scratch\n#SBATCH --mem=4G", ERROR),
        ("source ~/.bashrc\n#SBATCH -p gpu", ERROR),
        ("echo start\n#SBATCH --requeue", WARNING),
        ("date\n#SBATCH --job-name=x\n#SBATCH -o x.log", WARNING),
        ("if true; then\n  #SBATCH --gres=gpu:1\nfi", ERROR),
        ("set -e\n\n# resources\n#SBATCH --nodes=2", ERROR),
        ("{ :; }\n#SBATCH hetjob", ERROR),
    ],
    "directive-not-recognised": [
        ("#sbatch --nodes=2", ERROR),
        ("#Sbatch -n 4", ERROR),
        ("#SBACTH --gres=gpu:1", ERROR),
        ("#SBATC --mem=4G", ERROR),
        ("#sbatch --time=2:00:00", WARNING),
        ("#SABTCH -e x.err", WARNING),
        ("# SBATCH --nodes=2", WARNING),
        (" #SBATCH --nodes=2", ERROR),
        ("\t#SBATCH --ntasks=2", ERROR),
        ("#!SBATCH --nodes=2", ERROR),
        ("#SBATCH\u00a0--nodes=2", ERROR),
        ("#SBATCH: --nodes=2", ERROR),
        ("#SBATCHES --nodes=2", ERROR),
        ("//SBATCH --nodes=2\n#SBATCH -n2", ERROR),
        ("SBATCH --nodes=2\n#SBATCH -n2", ERROR),
        ("#sbatch --nodes=2\n#sbatch --ntasks=4", ERROR),
        ("#SLURM --nodes=2", WARNING),
    ],
    "directive-variable": [
        ("#SBATCH --output=$HOME/x.out", ERROR),
        ("#SBATCH -o log-$SLURM_JOB_ID.out", ERROR),
        ("#SBATCH -e ${SLURM_JOB_NAME}_${SLURM_JOB_ID}.err", ERROR),
        ("#SBATCH --output=$(date +%F).log", ERROR),
        ("#SBATCH --output=`hostname`.log", ERROR),
        ("#SBATCH --output=run_$(date +%Y %m).log", ERROR),
        ("#SBATCH --chdir=$SCRATCH/run", ERROR),
        ("#SBATCH --chdir=~/run", ERROR),
        ("#SBATCH -o ~user/x.log", ERROR),
        ("#SBATCH --mail-user=$USER@example.org", ERROR),
        ("#SBATCH --account=$ACCOUNT", ERROR),
        ("#SBATCH --nodes=$NODES", ERROR),
        ("#SBATCH --nodes=${NODES:-2}", ERROR),
        ("#SBATCH --time=$WALL", ERROR),
        ("#SBATCH --gres=gpu:$GPUS", ERROR),
        ("#SBATCH --array=0-$N", ERROR),
        ("#SBATCH --array=0-$((N-1))", ERROR),
        ("#SBATCH --export=ALL,ROOT=$HOME/data", ERROR),
        ("#SBATCH --job-name=train_$USER", WARNING),
        ("#SBATCH --job-name='train $USER'", WARNING),
    ],
    "directive-stray-text": [
        ("#SBATCH --mem 64 GB", ERROR),
        ("#SBATCH --mem=64 G", ERROR),
        ("#SBATCH --mail-type=END, FAIL", ERROR),
        ("#SBATCH --array 1,3, 5", ERROR),
        ("#SBATCH --time=3 days", ERROR),
        ("#SBATCH --time 24 hours", ERROR),
        ("#SBATCH --job-name = x", ERROR),
        ("#SBATCH --job-name= x", ERROR),
        ("#SBATCH --job-name =x", ERROR),
        ("#SBATCH --nodes = 2", ERROR),
        ("#SBATCH --job-name=my job", ERROR),
        ("#SBATCH --nodes=2 two nodes", ERROR),
        ("#SBATCH --nodes=2 // two nodes", ERROR),
        ("#SBATCH --exclusive user", ERROR),
        ("#SBATCH --nice 10", ERROR),
        ("#SBATCH —nodes=2", ERROR),
        ("#SBATCH – N 2", ERROR),
        ("#SBATCH nodes=2", ERROR),
        ("#SBATCH --nodes", ERROR),
        ("#SBATCH --comment\n#SBATCH --nodes=2", ERROR),
        ("#SBATCH -N2\n#SBATCH hetjob -N3", ERROR),
        ('#SBATCH --nodes=2 "" -n4', ERROR),
        ("#SBATCH --nodelist=n1, n2", ERROR),
        ("#SBATCH --job-name=a\\ b", WARNING),
    ],
    "directive-continuation": [
        ("#SBATCH --nodes=2 \\\n  --ntasks=4", ERROR),
        ("#SBATCH --nodes=2 \\\n  --ntasks=4 \\\n  -c4\n#SBATCH --mem=4G", ERROR),
        ("#SBATCH --nodes=2\n--ntasks=4", ERROR),
        ("#SBATCH --nodes=2 \\\n# --ntasks=4", ERROR),
        ("#SBATCH \\\n--nodes=2", ERROR),
    ],
    "directive-unclosed-quote": [
        ('#SBATCH --job-name="x', ERROR),
        ("#SBATCH --comment=John's", ERROR),
        ('#SBATCH --comment=\'a "b" # c', ERROR),
    ],
    "unknown-option": [
        ("#SBATCH --ntasks_per_node=4", ERROR),
        ("#SBATCH --gpus_per_node=4 --nodes=2", ERROR),
        ("#SBATCH -nodes=2", ERROR),
        ("#SBATCH -time=2:00:00", ERROR),
        ("#SBATCH -job-name=x", ERROR),
        ("#SBATCH -output=x.log", ERROR),
        ("#SBATCH --Nodes=2", ERROR),
        ("#SBATCH --cpu-per-task=4", ERROR),
        ("#SBATCH --gress=gpu:1", ERROR),
        ("#SBATCH --label", ERROR),
        ("#SBATCH --cpu-bind=none", ERROR),
        ("#SBATCH --cpu_bind=none", ERROR),
        ("#SBATCH --kill-on-bad-exit=1", ERROR),
        ("#SBATCH --mpi=pmix", ERROR),
        ("#SBATCH --unbuffered", ERROR),
        ("#SBATCH --workdir=/x", ERROR),
        ("#SBATCH --share", ERROR),
        ("#SBATCH --walltime=2:00:00", ERROR),
        ("#SBATCH --queue=gpu", ERROR),
        ("#SBATCH -Z", ERROR),
        ("#SBATCH --zzz=3", WARNING),
    ],
    "short-option-equals": [
        ("#SBATCH -N=2", ERROR),
        ("#SBATCH -t=24:00:00", ERROR),
        ("#SBATCH -p=gpu", ERROR),
        ("#SBATCH -c=4 -n2", ERROR),
        ("#SBATCH -J=x", WARNING),
        ("#SBATCH -o=x.log", WARNING),
    ],
    "abbreviated-option": [
        ("#SBATCH --tasks=4", WARNING),
        ("#SBATCH --task=4", WARNING),
        ("#SBATCH --ntasks-per-no=4", WARNING),
        ("#SBATCH --job=x", WARNING),
        ("#SBATCH --out x.log", WARNING),
        ("#SBATCH --err=x.log", WARNING),
        ("#SBATCH --partit=gpu", WARNING),
        ("#SBATCH --cpus=4", ERROR),
        ("#SBATCH --gpu=4", ERROR),
        ("#SBATCH --ntask=2", ERROR),
        ("#SBATCH --mem-per=4G", ERROR),
    ],
    "bad-option-value": [
        ("#SBATCH --time=1h", ERROR),
        ("#SBATCH --time=90m", ERROR),
        ("#SBATCH --time=2d12h", ERROR),
        ("#SBATCH --time=1.5", ERROR),
        ("#SBATCH --time=1:00:00:00", ERROR),
        ("#SBATCH --time=one-hour", ERROR),
        ("#SBATCH --mem=1.5G", ERROR),
        ("#SBATCH --mem=64GiB", ERROR),
        ("#SBATCH --mem=64Gi", ERROR),
        ("#SBATCH --mem-per-cpu=4gig", ERROR),
        ("#SBATCH --tmp=4GiB", ERROR),
        ("#SBATCH --mail-type=DONE", ERROR),
        ("#SBATCH --mail-type=END,FIAL", WARNING),
        ("#SBATCH --open-mode=apend", WARNING),
        ("#SBATCH --open-mode=overwrite", ERROR),
        ("#SBATCH --begin=4pm", ERROR),
        ("#SBATCH --begin=now+2h", ERROR),
        ("#SBATCH --begin=tommorow", ERROR),
        ("#SBATCH --deadline=2030-13-01", ERROR),
        ("#SBATCH --array=3-0", ERROR),
        ("#SBATCH --array=0-9%", ERROR),
        ("#SBATCH --array=1..10", ERROR),
        ("#SBATCH --array=1,1", WARNING),
        ("#SBATCH --array=0-9%0", WARNING),
        ("#SBATCH --dependency=afterok:123,afterany:4?afterok:5", WARNING),
        ("#SBATCH --dependency=after_ok:123", ERROR),
        ("#SBATCH --dependency=afterok", ERROR),
        ("#SBATCH --dependency=afterok=123", ERROR),
        ("#SBATCH --signal=USR1:90", ERROR),
        ("#SBATCH --signal=B:USR3@90", ERROR),
        ("#SBATCH --signal=SIGUSR1@90s", ERROR),
        ("#SBATCH --nodes=two", ERROR),
        ("#SBATCH --nodes=4-2", ERROR),
        ("#SBATCH --nodes=", ERROR),
        ("#SBATCH --ntasks=4x", ERROR),
        ("#SBATCH --ntasks=0", ERROR),
        ("#SBATCH --cpus-per-task=1.5", ERROR),
        ("#SBATCH --cpus-per-task=auto", ERROR),
        ("#SBATCH --constraint='a100|'", ERROR),
        ("#SBATCH --constraint='[a100|h100'", ERROR),
        ("#SBATCH --nodelist=n[1-", ERROR),
        ("#SBATCH --exclude=n[4-1]", ERROR),
        ("#SBATCH --exclusive=yes", ERROR),
        ("#SBATCH --hold=yes", ERROR),
        ("#SBATCH --contiguous=1", ERROR),
        ("#SBATCH --distribution=blockk", ERROR),
        ("#SBATCH --distribution=plane", ERROR),
        ("#SBATCH --hint=multithreaded", ERROR),
        ("#SBATCH --gres=gpu:1 --gpu-bind=close", ERROR),
        ("#SBATCH --licenses=matlab=2", ERROR),
        ("#SBATCH --output=logs/", ERROR),
        ("#SBATCH --output=x-%d.out", WARNING),
        ("#SBATCH --output=a\\\\b-%j.out", WARNING),
        ("#SBATCH --time=1:00:00 --time-min=2:00:00", ERROR),
        ("#SBATCH --nice=low", ERROR),
        ("#SBATCH --kill-on-invalid-dep=true --dependency=singleton", ERROR),
    ],
    "time-in-minutes": [
        ("#SBATCH --time=24", WARNING),
        ("#SBATCH -t 48", WARNING),
        ("#SBATCH -t72", WARNING),
        ("#SBATCH --time=24:00", WARNING),
        ("#SBATCH --time=48:00", WARNING),
        ("#SBATCH --time=72:00", WARNING),
        ("#SBATCH --time=23:59", WARNING),
        ("#SBATCH --time=1:30", WARNING),
        ("#SBATCH --time=10 # hours", WARNING),
        ("#SBATCH --time=10   # 10 h", WARNING),
        ("#SBATCH --time=2 # 2 days", WARNING),
        ("#SBATCH --time=10:00 # 10 hours", WARNING),
    ],
    "mem-unit-missing": [
        ("#SBATCH --mem=64", ERROR),
        ("#SBATCH --mem 16", ERROR),
        ("#SBATCH --mem-per-cpu=4", ERROR),
        ("#SBATCH --mem-per-gpu=40 --gres=gpu:1", ERROR),
        ("#SBATCH --mem=128 --gres=gpu:1", ERROR),
    ],
    "mutually-exclusive-options": [
        ("#SBATCH --mem=64G --mem-per-cpu=4G", ERROR),
        ("#SBATCH --mem=64G\n#SBATCH --mem-per-gpu=4G --gres=gpu:1", ERROR),
        ("#SBATCH --cpus-per-task=4 --cpus-per-gpu=4 --gres=gpu:1", ERROR),
        ("#SBATCH --ntasks-per-gpu=1 --gpus=4 --ntasks-per-node=4", ERROR),
        ("#SBATCH --ntasks-per-gpu=1 -n4 --gpus-per-task=1", ERROR),
        ("#SBATCH --exclusive --oversubscribe", ERROR),
        ("#SBATCH --core-spec=1 --thread-spec=1", ERROR),
        ("#SBATCH --requeue --no-requeue", WARNING),
        ("#SBATCH --hint=nomultithread --threads-per-core=1", WARNING),
    ],
    "duplicate-option": [
        ("#SBATCH --export=ALL,A=1\n#SBATCH --export=ALL,B=1", WARNING),
        ("#SBATCH -N2 --nodes=3", WARNING),
        ("#SBATCH --output=a.log\n#SBATCH -o b.log", WARNING),
        ("#SBATCH --gres=gpu:1\n#SBATCH --gres=nvme:1", ERROR),
        ("#SBATCH --ntasks-per-node=4\n#SBATCH --tasks-per-node=2", WARNING),
        ("#SBATCH --time=1:00:00\n#SBATCH -t 2:00:00", WARNING),
        ("#SBATCH -x n1\n#SBATCH -x n2\n#SBATCH -x n3", WARNING),
    ],
    "bad-gres": [
        ("#SBATCH --gres=gpu:4:a100", ERROR),
        ("#SBATCH --gres=gpus:4", ERROR),
        ("#SBATCH --gres=GPU:2", ERROR),
        ("#SBATCH --gres=a100:2", ERROR),
        ("#SBATCH --gres=rtx_3090:2", ERROR),
        ("#SBATCH --gres=gpu:1(S:0)", ERROR),
        ("#SBATCH --gres=gpu:a100:4(IDX:0-3)", ERROR),
        ("#SBATCH --gres=gpu=4", WARNING),
        ("#SBATCH --gres=4", ERROR),
        ("#SBATCH --gres=gpu:", ERROR),
        ("#SBATCH --gres=gpu:-1", ERROR),
        ("#SBATCH --gres=gpu:a100:two", ERROR),
        ("#SBATCH --gres=gpu:2,", ERROR),
        ("#SBATCH --gres=nvme:1,gpu:4:a100", ERROR),
        ("#SBATCH --gpus=gpu:2 -N1", ERROR),
        ("#SBATCH --gpus=GPU:2 -N1", ERROR),
        ("#SBATCH --gpus-per-node=gpu:4", ERROR),
        ("#SBATCH --gpus-per-node=gpu:a100:4", ERROR),
        ("#SBATCH --gpus-per-node=4:a100", ERROR),
        ("#SBATCH --gpus-per-node=a100=4", ERROR),
        ("#SBATCH --gpus-per-task=gpu:1 -n2", ERROR),
    ],
    "nodelist-mismatch": [
        ("#SBATCH -N1 -w n1,n2", ERROR),
        ("#SBATCH -N2 --nodelist=n[01-04]", ERROR),
        ("#SBATCH -N1-2 --nodelist=n[1-3]", ERROR),
        ("#SBATCH -w n[1-2] --exclude=n[2-4]", ERROR),
    ],
    "array-log-collision": [
        ("#SBATCH --array=0-9 --output=x.log", WARNING),
        ("#SBATCH -a 0-9 -o x-%A.log", WARNING),
        ("#SBATCH -a 0-9 -o %x-%u-%N.log", WARNING),
        ("#SBATCH -a 0-9 -o x-%j.log -e x.err", WARNING),
        ("#SBATCH -a 0-9%1 -o x-%%a.log", WARNING),
        ("#SBATCH -a 0-9 -o x.log -e x.log", WARNING),
    ],
    "array-pattern-no-array": [
        ("#SBATCH -o x-%A_%a.out", WARNING),
        ("#SBATCH -o x-%a.out -e x-%a.err", WARNING),
        ("#SBATCH -o x-%4a.out", WARNING),
    ],
    "ntasks-contradiction": [
        ("#SBATCH -N2 -n4 --ntasks-per-node=4", ERROR),
        ("#SBATCH -N2 -n9 --ntasks-per-node=4", ERROR),
        ("#SBATCH --nodes=4 --ntasks=4 --ntasks-per-node=8", ERROR),
        ("#SBATCH --nodes=2\n#SBATCH --ntasks=8\n#SBATCH --tasks-per-node=8", ERROR),
    ],
    "ntasks-fewer-than-nodes": [
        ("#SBATCH -N2 -n1", ERROR),
        ("#SBATCH --nodes=4 --ntasks=2", ERROR),
        ("#SBATCH -N2 -n1 --ntasks-per-node=1", ERROR),
        ("#SBATCH -w n[1-3] -n1", ERROR),
        ("#SBATCH -N2-4 -n1", ERROR),
    ],
    "uneven-gpus": [
        ("#SBATCH -N2 --gpus=4", WARNING),
        ("#SBATCH -N2 -n4 -G 4", WARNING),
        ("#SBATCH -N2 --gpus=a100:8 --ntasks-per-node=4", WARNING),
        ("#SBATCH -n32 --gpus=32", WARNING),
    ],
    "gpu-request-conflict": [
        ("#SBATCH --gres=gpu:4 --gpus-per-node=4", WARNING),
        ("#SBATCH -n4 --gres=gpu:2 --gpus-per-task=1", WARNING),
        ("#SBATCH --gpus=4 --gpus-per-node=2", WARNING),
        ("#SBATCH -N2 --gpus=4 --gpus-per-node=4", ERROR),
        ("#SBATCH --gpus=5 --gpus-per-node=2", ERROR),
        ("#SBATCH -N1 --ntasks-per-node=4 --gpus-per-node=2 --gpus-per-task=1", ERROR),
        ("#SBATCH --gpus-per-task=1", ERROR),
        ("#SBATCH -n4 --gpus=6 --gpus-per-task=1 -N1", ERROR),
        ("#SBATCH --gpus=3 --gpus-per-task=2 -N1", ERROR),
        ("#SBATCH --gpus-per-socket=2", ERROR),
        ("#SBATCH --cpus-per-gpu=4", ERROR),
        ("#SBATCH --mem-per-gpu=40G", ERROR),
    ],
}


@pytest.mark.parametrize(
    ("rule", "lines", "severity"),
    [(rule, *case) for rule, cases in FAULTS.items() for case in cases],
)
def test_a_fault(rule: str, lines: str, severity: str) -> None:
    assert found(script(lines)) == [(rule, severity)]


CLEAN = [
    "#SBATCH --nodes=2 --ntasks-per-node=4 --gres=gpu:4",
    "#SBATCH --nodes=2 --ntasks=8 --ntasks-per-node=4",
    "#SBATCH -N2 -n2",
    "#SBATCH -N2 -n5 --ntasks-per-node=3",
    "#SBATCH --comment='for $USER'",
    "#SBATCH -N1 -n8",
    "#SBATCH -n8 --ntasks-per-node=4",
    "#SBATCH --time=1-12",
    "#SBATCH --time=1-",
    "#SBATCH --time=UNLIMITED",
    "#SBATCH --time=infinite",
    "#SBATCH --time=0",
    *[f"#SBATCH --time={minutes}" for minutes in (5, 10, 15, 20, 30, 45, 60, 90, 120, 240, 1440)],
    *[f"#SBATCH --time={minutes}:00" for minutes in (5, 10, 15, 30, 45, 60, 90)],
    "#SBATCH --time=60 # 1 hour",
    "#SBATCH --time=1440 # 1 day",
    "#SBATCH --time=30 # half an hour",
    "#SBATCH --time=0:30",
    "#SBATCH --time=120 # minutes",
    "#SBATCH --time=00:24:00",
    "#SBATCH --mem=0",
    "#SBATCH --mem=4096",
    "#SBATCH --mem=16000",
    "#SBATCH --mem=500",
    "#SBATCH --mem-per-cpu=500",
    "#SBATCH --mem-per-cpu=2048",
    "#SBATCH --mem=64gb",
    "#SBATCH --mem=64M",
    "#SBATCH --mail-type=end,fail",
    "#SBATCH --mail-type=END --mail-type=FAIL",
    "#SBATCH --mail-type=ALL,TIME_LIMIT_80",
    "#SBATCH --open-mode=append",
    "#SBATCH --open-mode=a",
    "#SBATCH --begin=16:00",
    "#SBATCH --begin=now+2hours",
    "#SBATCH --begin=2030-01-20T12:34",
    "#SBATCH --array=0-9%2 --output=x-%A_%a.log",
    "#SBATCH --array=0-9 --output=x-%4a.log",
    "#SBATCH --array=0-9 --output=x-%j.log",
    "#SBATCH --array=0-9 --output=/dev/null",
    "#SBATCH --array=0-9",
    "#SBATCH --array=5 --output=x.log",
    "#SBATCH --array=1,3,5-7:2",
    "#SBATCH --output=x-%A.log",
    "#SBATCH --output=%x-%j.out --error=%x-%j.err",
    "#SBATCH --output=100%%-%j.out",
    "#SBATCH --output=%x-%b.out",
    "#SBATCH --dependency=afterok:123:124,afterany:125",
    "#SBATCH --dependency=singleton",
    "#SBATCH --dependency=123",
    "#SBATCH --signal=B:USR1@120",
    "#SBATCH --signal=SIGTERM@60",
    "#SBATCH --signal=10",
    "#SBATCH --nodes=2-4",
    "#SBATCH --nodes=1k",
    "#SBATCH --constraint='a100&nvlink'",
    "#SBATCH -C a100|h100",
    "#SBATCH --constraint=[rack1|rack2]",
    "#SBATCH --distribution=block:cyclic",
    "#SBATCH --distribution=plane=4",
    "#SBATCH -m arbitrary",
    "#SBATCH --hint=nomultithread",
    "#SBATCH --gres=gpu:1 --gpu-bind=closest",
    "#SBATCH --gres=gpu:1 --gpu-bind=none",
    "#SBATCH --licenses=matlab:2,ansys",
    "#SBATCH --exclusive",
    "#SBATCH --exclusive=user",
    "#SBATCH --nice=100",
    "#SBATCH --switches=1@10:00",
    "#SBATCH --gres=gpu",
    "#SBATCH --gres=gpu:a100",
    "#SBATCH --gres=gpu:a100:4",
    "#SBATCH --gres=gpu:A100:4",
    "#SBATCH --gres=gpu:rtx_3090:2",
    "#SBATCH --gres=gpu:3g.20gb:1",
    "#SBATCH --gres=gpu:1080ti:2",
    "#SBATCH --gres=gpu:a100:2,nvme:1",
    "#SBATCH --gres=nvme:100G",
    "#SBATCH --gres=lscratch:100,gpu:1",
    "#SBATCH --gres=shard:4",
    "#SBATCH --gres=mps:50",
    "#SBATCH --gres=none",
    "#SBATCH --gres=gpu:0",
    "#SBATCH --gpus=1",
    "#SBATCH -N1 --gpus=a100:4",
    "#SBATCH --gpus-per-node=a100:4",
    "#SBATCH --gpus-per-node=h100",
    "#SBATCH -N2 --gpus=2",
    "#SBATCH -N2 --gpus=8 --gpus-per-node=4",
    "#SBATCH --gpus=4 --gpus-per-node=4",
    "#SBATCH -n4 --gpus-per-task=1",
    "#SBATCH -N2 --ntasks-per-node=4 --gpus-per-task=1",
    "#SBATCH -N2 --ntasks-per-node=4 --gpus-per-task=1 --gpus-per-node=4",
    "#SBATCH -n4 --gpus=4 --gpus-per-task=1 -N1",
    "#SBATCH -N2 --gpus-per-task=1",
    "#SBATCH --gpus=4 --ntasks-per-gpu=1 -N1",
    "#SBATCH --gpus-per-socket=2 --sockets-per-node=2",
    "#SBATCH --gres=gpu:2 --cpus-per-gpu=8 --mem-per-gpu=40G",
    "#SBATCH -N2 -w n[1-2]",
    "#SBATCH -N4 -w n[1-2]",
    "#SBATCH -w n[1-2] -x n3",
    "#SBATCH -w ./hosts -N1",
    "#SBATCH -N1 --nodes=1",
    "#SBATCH --time=1:00:00\n#SBATCH -t 01:00:00",
    "#SBATCH -N1 -n1\n#SBATCH hetjob\n#SBATCH -N2 -n2",
    "#SBATCH --comment='costs $5'",
    "#SBATCH --job-name=a~b",
    "#SBATCH --container-image=nvcr.io/nvidia/pytorch:24.06-py3",
    "#SBATCH --container-mounts /a:/b",
    "#SBATCH --image=nersc/pytorch:24.06",
    "##SBATCH --nodes=2",
    "#SBATCH --nodes=2 \\\n#SBATCH --ntasks=4",
    "#SBATCH -p a\n# SBATCH -p b",
    "#SBATCH --nodes=2 # --ntasks=4",
    "#SBATCH --job-name='two words' --comment=\"it's fine\"",
    "#SBATCH --export=NONE",
    "#SBATCH --export=ALL,A=1,B=2",
    "#SBATCH --ntasks 4 --cpus-per-task 4 --mem 4G",
    "#SBATCH -p gpu,long -q normal -A proj",
    "#SBATCH --requeue --hold --contiguous --reboot",
    "",
]


@pytest.mark.parametrize("lines", CLEAN)
def test_what_is_no_fault(lines: str) -> None:
    assert found(script(lines)) == []


@pytest.mark.parametrize(
    ("lines", "slurm", "expected"),
    [
        ("#SBATCH --exclusive --oversubscribe", "22.05", WARNING),
        ("#SBATCH --exclusive --oversubscribe", "23.02", ERROR),
        ("#SBATCH --cpus-per-task=4 --cpus-per-gpu=4 --gres=gpu:1", "20.11", WARNING),
        ("#SBATCH --gres=gpu:4 --gpus-per-node=4", "25.11", WARNING),
        ("#SBATCH --gres=gpu:4 --gpus-per-node=4", "26.05", ERROR),
        ("#SBATCH --gres=gpu=4", "22.05", ERROR),
        ("#SBATCH --gres=gpu=4", "24.05", None),
        ("#SBATCH --gres=gres/gpu:4", "24.11", None),
        ("#SBATCH --cpus-per-gpu=4", "22.05", None),
        ("#SBATCH --cpus-per-gpu=4", "23.02", ERROR),
        ("#SBATCH --tres-per-task=cpu:4", "22.05", ERROR),
        ("#SBATCH --tres-per-task=cpu:4", "23.02", None),
        ("#SBATCH --power=level", "24.05", ERROR),
        ("#SBATCH --power=level", "23.11", None),
        ("#SBATCH --exclusive=topo", "23.11", ERROR),
        ("#SBATCH --exclusive=topo", "24.05", None),
        ("#SBATCH --nodes=1,2", "22.05", ERROR),
        ("#SBATCH --nodes=1,2", "23.02", None),
        ("#SBATCH --job-name=a\\ b", "22.05", ERROR),
        ("#SBATCH --job-name=a\\ b", "24.11", None),
        ("#SBATCH --output=%x-%b.out", "22.05", WARNING),
        ("#SBATCH --output=%x-%b.out", "24.11", None),
        ("#SBATCH --dependency=1,2?3", "26.05", ERROR),
        ("#SBATCH --gres=gpu:1 --gpu-bind=none", "20.11", ERROR),
        ("#SBATCH -N1 -w n1,n2", "22.05", ERROR),
        ("#SBATCH -N1 -w n1,n2", "24.11", WARNING),
        ("#SBATCH --nodelist=n[1-2]-ib", "22.05", ERROR),
        ("#SBATCH --nodelist=n[1-2]-ib", "23.11", None),
        ("#SBATCH --ntasks-per-gpu=1 --gpus=1 --tres-per-task=cpu:1", "23.02", ERROR),
        ("#SBATCH --requeue=expedite", "25.11", None),
        ("#SBATCH --mail-type=END\n#SBATCH --mail-type=FAIL", "24.11", None),
        ("#SBATCH --mail-type=END\n#SBATCH --mail-type=FAIL", "26.05", WARNING),
        ("#SBATCH --job-name=my-HetJob -N2", "20.11", ERROR),
        ("#SBATCH -N2 # no hetjob", "20.11", ERROR),
        ("#SBATCH --output=packjob/log", "20.11", ERROR),
        ("#SBATCH -N2\n#SBATCH hetjob\n#SBATCH -N3", "20.11", None),
        ("#SBATCH --job-name=my-HetJob -N2", "22.05", None),
    ],
)
def test_by_release(lines: str, slurm: str, expected: str | None) -> None:
    severities = [severity for _, severity in found(script(lines), slurm)]
    assert severities == ([expected] if expected else [])


# --- directives that are data ---------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "cat > job.sh <<EOF\n#!/bin/bash\n#SBATCH --nodes=2\nEOF",
        "cat > job.sh <<'EOF'\n#SBATCH --nodes=2\nEOF\nsrun hostname",
        "sbatch <<-EOF\n\t#!/bin/bash\n\t#SBATCH --nodes=$N\n\tEOF",
        "echo '#!/bin/bash\n#SBATCH --nodes=2\n' > job.sh",
        'text="\n#SBATCH --nodes=2\n"',
        "python - <<EOF\nprint('''\n#SBATCH -N2\n''')\nEOF",
        "f() {\ncat <<EOF\n#SBATCH --nodes=2\nEOF\n}\nf > job.sh",
        "for i in 1 2; do\nsbatch <<EOF\n#!/bin/bash\n#SBATCH -N $i\nEOF\ndone",
    ],
)
def test_text_is_no_directive(body: str) -> None:
    assert found(script("#SBATCH -n1", command=body)) == []


def test_a_directive_behind_text() -> None:
    text = script("#SBATCH -n1", command="cat <<EOF\n#SBATCH -N3\nEOF\n#SBATCH --nodes=2")
    (finding,) = lint(text)
    assert (finding.rule, finding.location.line) == ("directive-after-command", 6)


def test_a_python_script() -> None:
    text = '#!/usr/bin/env python3\n#SBATCH -n1\nJOB = """\n#SBATCH --nodes=2\n"""\n'
    assert found(text) == []
    assert found(text + "#SBATCH --nodes=2\n") == [("directive-after-command", ERROR)]


# --- whole scripts --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the script is empty"),
        ("#SBATCH -n1\nhostname\n", "the script has no #! line"),
        ("\n#!/bin/bash\nhostname\n", "a blank line stands before the #! line"),
        ("# by me\n#!/bin/bash\nhostname\n", "the #! line is line 2, not the first"),
        (" #!/bin/bash\nhostname\n", "a blank stands before the #! line"),
        ("\ufeff#!/bin/bash\n#SBATCH -n1\nhostname\n", "a byte order mark stands before the #!"),
        ("#/bin/bash\nhostname\n", 'the first line starts with "#", not #!'),
        ("!#/bin/bash\n#SBATCH -n1\nhostname\n", 'the first line starts with "!#", not #!'),
        ("# !/bin/bash\nhostname\n", 'the first line starts with "# !", not #!'),
        ("#!\nhostname\n", "the script has no #! line"),
    ],
)
def test_shebang(text: str, message: str) -> None:
    (finding,) = lint(text)
    assert finding.rule == "missing-shebang"
    assert finding.message.startswith(message)


@pytest.mark.parametrize("first", ["#!/bin/sh", "#! /bin/bash -l", "#!/usr/bin/env python3"])
def test_other_shebangs(first: str) -> None:
    assert found(f"{first}\n#SBATCH -n1\n") == []


def test_line_ends() -> None:
    text = "#!/bin/bash\r\n#SBATCH --nodes=2\r\nsrun hostname\r\n"
    assert found(text) == [("crlf-line-endings", ERROR)]
    assert mended(text) == text.replace("\r", "")
    assert found("#!/bin/bash\nhostname\r\n") == [("crlf-line-endings", ERROR)]


def test_size() -> None:
    text = script("#SBATCH -n1")
    assert found(text + "#" * (4 * 1024 * 1024 - len(text) - 1)) == [
        ("not-read-to-the-end", WARNING)
    ]
    assert ("script-too-large", ERROR) in found(text + "#" * (4 * 1024 * 1024 - len(text)))
    assert found(script("#SBATCH -n1", command="echo \0")) == [("script-too-large", ERROR)]


@pytest.mark.parametrize(
    ("option", "folders", "expected"),
    [
        ("--output=logs/%j.out", (), ["log-dir-missing"]),
        ("--output=./logs/%j.out", (), ["log-dir-missing"]),
        ("--error=logs/a/%j.err", ("logs",), ["log-dir-missing"]),
        ("--output=logs/%x/%j.out", (), ["log-dir-missing"]),
        ("--output=logs/a.out --error=errors/a.err", (), ["log-dir-missing", "log-dir-missing"]),
        ("--output=logs/a.out --error=logs/a.err", (), ["log-dir-missing"]),
        ("--output=logs/%j.out", ("logs",), []),
        ("--output=logs/%j.out", ("../logs",), []),
        ("--output=logs/%x/%j.out", ("logs",), []),
        ("--output=%j.out", (), []),
        ("--output=%x/%j.out", (), []),
        ("--output=/scratch/logs/%j.out", (), []),
        ("--output=/dev/null", (), []),
        ("--chdir=/nowhere/at/all --output=logs/x", (), []),
        ("--chdir=work --output=logs/x", ("work/logs",), []),
    ],
)
def test_log_folders(
    option: str, folders: tuple[str, ...], expected: list[str], tmp_path: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for folder in folders:
        (here / folder).mkdir(parents=True)
    text = script(f"#SBATCH {option}")
    assert [d.rule for d in lint(text, folder=here)] == expected
    assert [d.rule for d in lint(text, folder=here, slurm="23.02")] == []
    assert lint(text) == ()


def test_a_folder_that_is_made_too_late(tmp_path: Path) -> None:
    text = script("#SBATCH -o logs/%j.out", command="mkdir -p logs\nhostname")
    (finding,) = lint(text, folder=tmp_path)
    assert "too late" in finding.why


def test_an_array_of_the_command_line() -> None:
    line = "#SBATCH -o x-%A_%a.out"
    assert found(script(line, command="echo $SLURM_ARRAY_TASK_ID")) == []
    assert found(script("# sbatch --array=0-9 job.sh", line)) == []


@pytest.mark.parametrize(
    ("time", "is_found"), [("1", True), ("4", True), ("8:00", True), ("5", False), ("10:00", False)]
)
def test_the_time_of_a_training(time: str, is_found: bool) -> None:
    line = f"#SBATCH --time={time}"
    assert found(script(line)) == []
    expected = [("time-in-minutes", WARNING)] if is_found else []
    assert found(script(line, command="python train.py")) == expected


@pytest.mark.parametrize(
    ("lines", "command", "expected"),
    [
        ("--gres=gpu:1g.10gb:4", "torchrun --standalone --nproc_per_node=4 train.py", ERROR),
        ("--gpus-per-node=mig-3g.20gb:2 -n2 -N1", "srun python train.py", WARNING),
        ("--gres=gpu:a100_3g.20gb:2 -n2 -N1", "RANK=$A srun python train.py", ERROR),
        ("--gres=gpu:1g.10gb:1", "python train.py", None),
        ("--gres=gpu:1g.10gb:4", "python train.py", None),
        ("--gres=gpu:a100:4", "torchrun --standalone --nproc_per_node=4 train.py", None),
    ],
)
def test_slices(lines: str, command: str, expected: str | None) -> None:
    rules = [("mig-multi-gpu", expected)] if expected else []
    assert found(script(f"#SBATCH {lines}", command=command)) == rules


# --- what --fix makes of it -----------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("set -e\n#SBATCH -N2\n#SBATCH -n4", "#SBATCH -N2\n#SBATCH -n4\nset -e"),
        ("#SBATCH -J x\n\nset -e\n#SBATCH -N2", "#SBATCH -J x\n#SBATCH -N2\n\nset -e"),
        ("if a; then\n  #SBATCH -N2\nfi", None),
        ("#sbatch -N2", "#SBATCH -N2"),
        ("  #SBATCH -N2", "#SBATCH -N2"),
        ("# SBATCH -N2", None),
        ("#SBATCH -o $SLURM_JOB_ID.out", "#SBATCH -o %j.out"),
        ("#SBATCH -o ${SLURM_JOB_NAME}-$USER.out", "#SBATCH -o %x-%u.out"),
        ("#SBATCH -o $HOME/x.out", None),
        ("#SBATCH --mem 64 GB", "#SBATCH --mem 64GB"),
        ("#SBATCH --job-name = x", "#SBATCH --job-name=x"),
        ("#SBATCH --nodes=2 two", None),
        ("#SBATCH -N2 \\\n  -n4 \\\n  -c2", "#SBATCH -N2\n#SBATCH -n4\n#SBATCH -c2"),
        ("#SBATCH --ntasks_per_node=4", "#SBATCH --ntasks-per-node=4"),
        ("#SBATCH -nodes=2", "#SBATCH --nodes=2"),
        ("#SBATCH -N=2", "#SBATCH -N 2"),
        ("#SBATCH --job=x", "#SBATCH --job-name=x"),
        ("#SBATCH --tasks=4", None),
        ("#SBATCH --mem=64GiB", "#SBATCH --mem=64G"),
        ("#SBATCH --mem=1.5G", "#SBATCH --mem=1536M"),
        ("#SBATCH --time=90m", "#SBATCH --time=01:30:00"),
        ("#SBATCH --begin=4pm", "#SBATCH --begin=4:00pm"),
        ("#SBATCH --open-mode=apend", "#SBATCH --open-mode=append"),
        ("#SBATCH --mail-type=FIAL", None),
        ("#SBATCH --gres=gpu:4:a100", "#SBATCH --gres=gpu:a100:4"),
        ("#SBATCH --gres=gpu:1(S:0)", "#SBATCH --gres=gpu:1"),
        ("#SBATCH --gpus=gpu:2 -N1", "#SBATCH --gpus=2 -N1"),
        ("#SBATCH -a 0-9 -o x-%A.out", "#SBATCH -a 0-9 -o x-%A_%a.out"),
        ("#SBATCH -a 0-9 -o x.out", None),
        ("#SBATCH -o x-%A_%a.out", "#SBATCH -o x-%j.out"),
        ("#SBATCH --time=24", None),
        ("#SBATCH -N2 -n1", None),
    ],
)
def test_fixes(before: str, after: str | None) -> None:
    assert mended(script(before)) == script(before if after is None else after)


# --- a cluster ------------------------------------------------------------------------

CLUSTER = Profile(
    name="example",
    slurm="22.05",
    node_types=(
        NodeType(name="a100", gpu="a100", gpus_per_node=4, cpus=16, memory="64G", count=2),
    ),
    partitions=(
        Partition(name="gpu", max_time="1-00:00:00", max_nodes=2),
        Partition(name="debug", max_time="30:00"),
        # Without a partition the command line may still name another.
        Partition(name="tiny", max_time="1:00", default=True),
    ),
    max_array_size=1001,
    forbidden={"exclusive": "nodes are shared"},
    required={"account": "there is no default"},
)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--gres=gpu:A100:2", 'no GPU of type "A100"'),
        ("--gpus-per-node=v100:2", 'no GPU of type "v100"'),
        ("--gpus=h100:1", 'no GPU of type "h100"'),
        ("--gres=gpu:8", "8 GPUs per node"),
        ("-N1 --gres=gpu:4 --ntasks-per-node=4 -c8", "32 CPUs per node"),
        ("-N1 -c32 --gres=gpu:1", "32 CPUs per node"),
        ("--gres=gpu:1 --mem=128G", "128G per node"),
        ("-p fast", 'no partition "fast"'),
        ("-p debug -t 2:00:00", "over the 00:30:00 of partition debug"),
        ("-p gpu -t 2-00:00:00", "over the 1-00:00:00 of partition gpu"),
        ("-p gpu -N4", "4 nodes"),
        ("--array=0-2000", "index 2000"),
        ("--exclusive", "refuses --exclusive"),
    ],
)
def test_a_cluster(options: str, said: str) -> None:
    (finding,) = lint(script(f"#SBATCH {options}"), profile=CLUSTER)
    assert finding.rule == "cluster-mismatch"
    assert said in finding.message
    assert finding.location.line == 2
    assert "_" not in finding.fix


@pytest.mark.parametrize(
    "options",
    [
        "",
        "-p gpu -N2 --gres=gpu:a100:4 --ntasks-per-node=4 -c4 --mem=64G -t 1-00:00:00",
        "--gpus-per-node=4 -p debug -t 10",
        "--gpus-per-node=4 -t 2:00:00",
        "--gpus=2 -N1 --cpus-per-gpu=4",
        "-n 4",
        "--array=0-1000",
        "--gres=nvme:1",
    ],
)
def test_what_a_cluster_has(options: str) -> None:
    assert lint(script(f"#SBATCH {options}"), profile=CLUSTER) == ()


def test_a_site_s_own_words_stay_as_they_are() -> None:
    """`nodes` at the start of a reason is no option."""
    whole = Gpus(form="none", why="nodes are given whole")
    site = Profile(name="site", gpus=whole, node_types=CLUSTER.node_types)
    (finding,) = lint(script("#SBATCH --gpus-per-node=2"), profile=site)
    assert finding.why == "nodes are given whole"


# --- whatever it is -------------------------------------------------------------------

_VALUES = ["", "0", "4", "9" * 30, "gpu:a100:2", "1-2", "2-1", "%A_%a", "$X", "`a`", "~/x", "1-"]
_VALUES += ["24:00", "64 GB", '"a b"', "'", "\\", "n[1-3]", "n[1-", "a/%j", "²", "1g.10gb:4", ":"]
_VALUES += [",", "=", "1,2?3", "USR1:9", "true", "x" * 2000, "\0", "\udcff"]
_WORDS = st.builds(
    "{}{}{}".format,
    st.sampled_from([f"--{option}" for option in catalog.options()] + ["-N", "-n", "-t", "-o", ""]),
    st.sampled_from("= "),
    st.sampled_from(_VALUES),
)
_LINES = st.builds(
    "{} {}{}".format,
    st.sampled_from(["#SBATCH"] * 6 + ["#sbatch", "# SBATCH", " #SBATCH", "#SBATCHX"]),
    st.lists(_WORDS, min_size=1, max_size=3).map(" ".join),
    st.sampled_from(["", "", " \\", " # hours", "\r"]),
)


@given(lines=st.lists(_LINES, max_size=5), profile=st.sampled_from([None, CLUSTER]))
def test_any_script(lines: list[str], profile: Profile | None) -> None:
    text = script(*lines, command="srun python train.py")
    for finding in lint(text, profile=profile):
        assert 1 <= finding.location.line <= text.count("\n") + 1
        assert finding.location.column >= 1
        assert finding.location.length >= 1
    once = mended(text)
    assert mended(once) == once
