"""Keeps every task of the job busy with a step of its own."""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def step(name: str) -> int:
    command = ["srun", "--exact", "--nodes=1", "--ntasks=1", "--cpus-per-task=1", "./simulate", name]
    return subprocess.run(command, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=Path, required=True)
    names = parser.parse_args().inputs.read_text().split()
    with ThreadPoolExecutor(int(os.environ["SLURM_NTASKS"])) as pool:
        return max(pool.map(step, names), default=0)


if __name__ == "__main__":
    sys.exit(main())
