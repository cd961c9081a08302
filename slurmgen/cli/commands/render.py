"""slurmgen render: a job file as an sbatch script."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.cli import report
from slurmgen.cli.planning import diff, plan_job, render_job
from slurmgen.errors import EXIT_FINDINGS, EXIT_OK, UsageError
from slurmgen.files import write_atomically
from slurmgen.jobfile.source import read_text
from slurmgen.script.pipeline import since

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.script.pipeline import Planned


def run(
    jobs: Sequence[str],
    *,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
    output: str | None = None,
    check: str | None = None,
    write: bool = False,
) -> int:
    """Print the script, write it to `output`, or compare it with the file `check`.

    With `write`, or `check` as "", the scripts beside all of the job files, as
    `commands/scripts.py` has it. Returns 1 with a diff on stdout where a script has drifted.
    """
    if write or check == "":
        if output is not None or (write and check is not None):
            raise UsageError(
                "-o, --write and --check without a script exclude each other",
                fix="name the script: --check SCRIPT" if output else "drop one of them",
            )
        from slurmgen.cli.commands import scripts

        return scripts.run(jobs or ["."], write=write, cluster=cluster, overrides=overrides)
    job = _one_of(jobs)
    if output is not None and check is not None:
        raise UsageError("-o and --check exclude each other", fix="drop one of them")
    planned = plan_job(job, cluster=cluster, overrides=overrides)
    text = render_job(planned)
    if check is not None:
        return _compare(text, Path(check), job, planned)
    if output is not None:
        write_atomically(Path(output), text)
    else:
        report.out(text)
    return EXIT_OK


def _one_of(jobs: Sequence[str]) -> str:
    if len(jobs) == 0:
        raise UsageError("no job file is named", fix="slurmgen render job.yaml")
    if len(jobs) > 1:
        raise UsageError(
            f"{len(jobs)} job files, and one script to print or compare",
            fix="--write or --check, which take the script beside each job file",
        )
    return jobs[0]


def _compare(text: str, path: Path, job: str, planned: Planned) -> int:
    present = read_text(path)
    if present == text:
        return EXIT_OK
    report.out(diff(present, text, str(path), f"rendered from {job}"))
    report.note(f"slurmgen: {path} has drifted from {job}{since(present, planned)}")
    report.note(f"  = fix: slurmgen render {job} -o {path}")
    return EXIT_FINDINGS
