"""What rehearsing a large job takes: 128 nodes of 8 GPUs, 1,024 ranks.

    python benchmarks/rehearse.py [NODES]

Prints the seconds, and of them those until Slurm was there; exits 1 where the rehearsal of 1,024
ranks takes more than 60 seconds, or finds anything wrong.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAX_SECONDS = 60

JOB = """\
nodes: {nodes}
gpus_per_node: h100:8
cpus_per_gpu: 8
mem: 200G
time: 1d
command: [python, train.py, --lr, 1e-3]
"""


def main(nodes: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "job.yaml").write_text(JOB.format(nodes=nodes))
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "slurmgen", "rehearse", "--format", "json", "job.yaml"],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        took = time.monotonic() - start
    said = json.loads(done.stdout)
    ranks = sum(len(group["ranks"]) for run in said["runs"] for group in run)
    print(
        f"{ranks} ranks on {nodes} nodes: {took:.1f} s, {said['seconds']:.1f} s of them the job's"
    )
    for fault in said["faults"]:
        print(fault["message"])
    return 1 if done.returncode != 0 or took > MAX_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 128))
