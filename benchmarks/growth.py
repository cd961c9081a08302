"""How what slurmgen costs grows with what it is given: shapes of scripts, and many job files.

    python benchmarks/growth.py [--all] [SHAPE ...]

Prints CPU seconds and the peak of memory for `render --check` over folders of job files, and for
lint of scripts in the shapes of tests/property/shapes.py at 10, 100 and 400 kB and 4 MiB, each in
a process of its own. Without --all these are the shapes that once were the worst. Exits 1 where
a shape costs more than a CPU-second for each 100 kB, or 100 MB above what an empty script needs.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZES = (10_000, 100_000, 400_000, 4 * 1024 * 1024 - 10_000)
FOLDERS = (200, 1_000, 2_000)
SECONDS_FOR_100_KB = 1.0
MAX_CHECK = {1_000: 2.0}
MAX_MEGABYTES = 100
# No shape may take so long; the process is ended then.
PATIENCE = 120
WORST = (
    "doubling", "two-kept", "own-folder", "if-slurm", "functions", "all-calls", "torchrun",
    "srun-background", "srun-exclusive", "names", "exported-chain", "ports", "here-shell",
    "heredoc", "append-array", "suppressed", "letters-line", "words-line", "dollars-line",
    "pipes-line", "opens-line", "closes-line", "heredocs-line", "nul-line", "subshell-nest",
)  # fmt: skip
JOB = "nodes: 2\ngpus_per_node: 4\ntime: 1h\ncommand: python train.py --seed {number}\n"

# What runs in a process of its own: lints one text of standard input.
LINT = """\
import resource, sys, time
from slurmgen.lint import engine, registry
from slurmgen.lint.job import load
text = sys.stdin.read()
rules = registry.rules()
engine.check(load("job.sbatch", "#!/bin/bash\\n#SBATCH -n1\\nsrun python x.py\\n"), rules)
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
outcome = engine.check(load("job.sbatch", text), rules)
seconds = time.process_time() - start
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
stopped = any(found.code == "SG012" for found in outcome.diagnostics)
print(seconds, (after - before) / 1024, int(stopped))
"""


def linted(text: str) -> tuple[float, float, bool] | None:
    """CPU seconds, megabytes above those of an empty script, and whether lint stopped."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", LINT],
            input=text,
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=PATIENCE,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return None
    seconds, megabytes, stopped = done.stdout.split()
    return float(seconds), float(megabytes), stopped == "1"


def lint(names: list[str], *, everything: bool) -> bool:
    """Print a line per shape; whether all keep to the budget."""
    sys.path.insert(0, str(ROOT))
    from tests.property import shapes

    is_good = True
    print(f"{'lint, CPU s (peak MB)':26}" + "".join(f"{size // 1000:>14,} kB" for size in SIZES))
    for shape in shapes.single("bash"):
        if shape.name not in (names or WORST) and not everything:
            continue
        cells = []
        for size in SIZES:
            found = linted(shape.text(size))
            if found is None:
                cells.append(f"over {PATIENCE}")
                is_good = False
                break
            seconds, megabytes, stopped = found
            allowed = SECONDS_FOR_100_KB * max(size, 100_000) / 100_000
            bad = seconds > allowed or megabytes > MAX_MEGABYTES
            is_good = is_good and not bad
            mark = "!" if bad else "*" if stopped else " "
            cells.append(f"{seconds:.2f} ({megabytes:.0f}){mark}")
        print(f"{shape.name:26}" + "".join(f"{cell:>17}" for cell in cells), flush=True)
    print("* stopped, and said so   ! over the budget")
    return is_good


def checked() -> bool:
    """Print what `render --check` costs over folders; whether it keeps to the budget."""
    is_good = True
    slurmgen = str(Path(sys.executable).with_name("slurmgen"))
    for number in FOLDERS:
        with tempfile.TemporaryDirectory() as folder:
            jobs = [Path(folder, f"job{n}.yaml") for n in range(number)]
            for n, job in enumerate(jobs):
                job.write_text(JOB.format(number=n))
            subprocess.run(
                [slurmgen, "render", "--write", *map(str, jobs)], check=True, capture_output=True
            )
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([slurmgen, "render", "--check", folder], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        is_good = is_good and seconds <= MAX_CHECK.get(number, seconds)
        print(f"render --check of {number:5,} job files {seconds:8.2f} s CPU", flush=True)
    return is_good


def main(arguments: list[str]) -> int:
    everything = "--all" in arguments
    names = [name for name in arguments if name != "--all"]
    is_good = names != [] or checked()
    return int(not (lint(names, everything=everything) and is_good))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
