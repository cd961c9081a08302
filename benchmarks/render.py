"""What rendering costs: a cold command, and many specs in one process.

    python benchmarks/render.py

Prints CPU times; exits 1 where a budget is broken: a cold `slurmgen render` may cost
1.25 times what importing pydantic, jinja2 and typer costs in the same run, and one
process must render 10,000 specs a CPU-second.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JOB = ROOT / "configs" / "jobs" / "quickstart.yaml"
ROUNDS = 25
SPECS = 1000
MAX_RATIO = 1.25
MIN_RATE = 10_000


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold() -> tuple[float, float]:
    """Median CPU seconds of the imports and of a render, measured in turn."""
    imports = [sys.executable, "-c", "import pydantic, jinja2, typer"]
    render = [str(Path(sys.executable).with_name("slurmgen")), "render", str(JOB)]
    for command in (imports, render):
        cpu_seconds(command)
    times = [(cpu_seconds(imports), cpu_seconds(render)) for _ in range(ROUNDS)]
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)


def warm() -> float:
    """Specs rendered in a CPU-second, from JobSpec objects, all of them different."""
    from slurmgen.cluster.profile import Profile
    from slurmgen.jobfile.job import JobSpec
    from slurmgen.script.plan import resolve
    from slurmgen.script.render import render

    profile = Profile(name="generic")
    specs = [
        JobSpec(
            job_name=f"job-{number}",
            nodes=1 + number % 7,
            gpus_per_node="a100:4",
            cpus_per_task=8,
            time="4:00:00",
            partition="gpu",
            account="proj42",
            output="logs/%x-%j.out",
            env={"NCCL_DEBUG": "WARN", "SEED": str(number)},
            setup={"modules": ["cuda/12.4"], "venv": ".venv"},
            command=["python", "train.py", "--seed", str(number)],
        )
        for number in range(SPECS)
    ]
    render(resolve(specs[0], profile))
    rates = []
    for _ in range(5):
        start = time.process_time()
        for spec in specs:
            render(resolve(spec, profile))
        rates.append(SPECS / (time.process_time() - start))
    return max(rates)


def main() -> int:
    imports, render = cold()
    ratio = render / imports
    rate = warm()
    print(f"import pydantic, jinja2, typer   {imports * 1000:7.1f} ms CPU (median of {ROUNDS})")
    print(f"slurmgen render, cold            {render * 1000:7.1f} ms CPU, {ratio:.2f} x")
    print(f"specs rendered in one process    {rate:7.0f} a CPU-second (best of 5 x {SPECS})")
    return int(ratio > MAX_RATIO or rate < MIN_RATE)


if __name__ == "__main__":
    sys.exit(main())
