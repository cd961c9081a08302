"""A script for /bin/sh is written in bash.

## What it does

Finds arrays, `[[ ]]`, `source`, `<( )`, `<<<`, `${X//a/b}`, `function`, `{1..4}`, `$RANDOM`,
`set -o pipefail` and the like under `#!/bin/sh`.

## Why is this bad

On Debian, Ubuntu and in most containers /bin/sh is dash, which stops with 'Syntax error: "("
unexpected' or goes on after "source: not found" (seen on Debian 12). On Red Hat's systems it is
bash: the script works there, until it moves.

## Example

```bash job.sbatch
#!/bin/sh
#SBATCH --array=0-2
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
losses=(ce focal dice)
srun python train.py --loss "${losses[$SLURM_ARRAY_TASK_ID]}"
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --array=0-2
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
losses=(ce focal dice)
srun python train.py --loss "${losses[$SLURM_ARRAY_TASK_ID]}"
```

## References

- dash(1)
- https://wiki.ubuntu.com/DashAsBinSh
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING, Edit
from slurmgen.lint.finding import Finding
from slurmgen.reading.shell.bashisms import find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "sh-shebang-bashism"
CODE = "SG504"
SEVERITY = WARNING

_POSIX = ("sh", "dash", "ash")


def check(job: Job) -> Iterator[Finding]:
    if job.script.interpreter not in _POSIX:
        return
    found = find(job.text)
    if not found:
        return
    first = found[0]
    places = dict.fromkeys(job.place(item.start, item.end) for item in found)
    lines = {place.line: place for place in reversed(places)}
    others = [lines[line] for line in sorted(lines)]
    yield Finding(
        job.place(first.start, first.end),
        f"{first.what} is bash's, but #!/bin/sh runs the script",
        "where sh is dash (Debian, Ubuntu, most containers) it fails there",
        "write #!/bin/bash in the first line",
        also=(*others[1:10],),
        edits=_edits(job),
    )


def _edits(job: Job) -> tuple[Edit, ...]:
    """/bin/bash in the place of /bin/sh, where it stands there just so."""
    line = job.script.lines[0]
    at = line.find("/bin/sh")
    if at < 0 or line[at + 7 : at + 8].strip():
        return ()
    return (Edit(at, at + 7, "/bin/bash"),)
