"""What linting costs: a cold command, and many scripts in one process.

    python benchmarks/lint.py

Prints CPU times; exits 1 where a budget is broken: a cold `slurmgen lint` of one script may
cost 0.4 CPU-seconds, and one process must lint 20 scripts of 40 lines a CPU-second.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 25
SCRIPTS = 40
MAX_COLD = 0.4
MIN_RATE = 20

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=resnet50-{number}
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=a100:4
#SBATCH --cpus-per-task=8
#SBATCH --mem=0
#SBATCH --time=12:00:00
#SBATCH --partition=gpu
#SBATCH --account=proj42
#SBATCH --output=%x-%j.out
#SBATCH --signal=USR1@120
#SBATCH --requeue

set -euo pipefail

# Environment
module purge
module load cuda/12.4
source "$HOME/venvs/train/bin/activate"
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
export NCCL_DEBUG=WARN

# Rendezvous
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
MASTER_ADDR=$(head -n 1 <<< "$nodes")
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT
echo "job $SLURM_JOB_ID on $nodes, rank 0 at $MASTER_ADDR:$MASTER_PORT"

for seed in 1 2 3; do
  srun --kill-on-bad-exit=1 --cpus-per-task="$SLURM_CPUS_PER_TASK" bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec python train.py --seed "$1" --data "$SCRATCH/imagenet" \\
      --lr 1e-3 --epochs 90 --workers 7
  ' task "$seed"
done

echo "finished"
"""


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    finished = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if finished.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: exit status {finished.returncode}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold(script: Path) -> float:
    """Median CPU seconds of the command."""
    command = [str(Path(sys.executable).with_name("slurmgen")), "lint", str(script)]
    cpu_seconds(command)
    return statistics.median(cpu_seconds(command) for _ in range(ROUNDS))


def warm() -> float:
    """Scripts linted in a CPU-second, by all rules, all of them different."""
    from slurmgen.lint import engine, registry
    from slurmgen.lint.job import load

    texts = [SCRIPT.format(number=number) for number in range(SCRIPTS)]
    rules = registry.choose()
    engine.check(load("job.sbatch", texts[0]), rules)
    rates = []
    for _ in range(3):
        start = time.process_time()
        for text in texts:
            engine.check(load("job.sbatch", text), rules)
        rates.append(SCRIPTS / (time.process_time() - start))
    return max(rates)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "job.sbatch")
        script.write_text(SCRIPT.format(number=0))
        seconds = cold(script)
    rate = warm()
    print(f"slurmgen lint, cold              {seconds * 1000:7.1f} ms CPU (median of {ROUNDS})")
    print(f"scripts linted in one process    {rate:7.0f} a CPU-second (best of 3 x {SCRIPTS})")
    return int(seconds > MAX_COLD or rate < MIN_RATE)


if __name__ == "__main__":
    sys.exit(main())
