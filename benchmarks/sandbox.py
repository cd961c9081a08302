"""How long a large sandbox takes to start, and a job of eight tasks a node to pass through it.

python benchmarks/sandbox.py 128 [--netns]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from slurmgen.sandbox import Sandbox, Shape

TASKS_PER_NODE = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nodes", type=int)
    parser.add_argument("--netns", action="store_true")
    given = parser.parse_args()
    shape = Shape(nodes=given.nodes, gpus_per_node=TASKS_PER_NODE)
    job = ["srun", f"-N{given.nodes}", f"--ntasks-per-node={TASKS_PER_NODE}", "printenv"]
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        with Sandbox.up(shape=shape, directory=Path(folder), netns=given.netns) as sandbox:
            up = time.monotonic()
            ran = sandbox.run([*job, "SLURM_PROCID"], timeout=600)
            end = time.monotonic()
        ranks = len(set(ran.stdout.split()))
        print(f"up {up - start:.1f} s, {ranks} tasks {end - up:.1f} s")
        print(f"down {time.monotonic() - end:.1f} s")


if __name__ == "__main__":
    main()
