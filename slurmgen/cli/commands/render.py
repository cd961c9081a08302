"""slurmgen render: a job file as an sbatch script."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.cli import report
from slurmgen.errors import EXIT_FINDINGS, EXIT_OK, UsageError
from slurmgen.files import write_atomically
from slurmgen.jobfile.source import read_text
from slurmgen.script.pipeline import diff, plan_job, render_job, since

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.script.pipeline import Planned


def run(
    job: str,
    *,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
    output: str | None = None,
    check: str | None = None,
) -> int:
    """Print the script, write it to `output`, or compare it with the file `check`.

    Returns 1 with a diff on stdout where `check` has drifted.
    """
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


def _compare(text: str, path: Path, job: str, planned: Planned) -> int:
    present = read_text(path)
    if present == text:
        return EXIT_OK
    report.out(diff(present, text, str(path), f"rendered from {job}"))
    report.note(f"slurmgen: {path} has drifted from {job}{since(present, planned)}")
    report.note(f"  = fix: slurmgen render {job} -o {path}")
    return EXIT_FINDINGS
