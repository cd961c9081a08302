"""slurmgen plan: which rank sits where, and what the job costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.cli import report
from slurmgen.cli.planning import plan_job
from slurmgen.errors import EXIT_OK
from slurmgen.files import write_atomically
from slurmgen.script.cost import cost_lines
from slurmgen.script.pipeline import require_ranks
from slurmgen.script.placement import Seat, seat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.script.plan import JobPlan

# A table longer than this is shortened in the middle: nobody reads a thousand rows.
_MAX_ROWS = 64


def run(
    job: str,
    *,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
    svg: str | None = None,
) -> int:
    """Print the plan as a table, or write it to `svg` as a picture (`-`: stdout)."""
    plan = plan_job(job, cluster=cluster, overrides=overrides).plan
    require_ranks(plan, "plan")
    if svg is None:
        report.show(format_table(plan))
        return EXIT_OK
    from slurmgen.script.picture import draw

    picture = draw(plan)
    if svg == "-":
        report.out(picture)
    else:
        write_atomically(Path(svg), picture)
    return EXIT_OK


def format_table(plan: JobPlan) -> str:
    """A heading, a row per rank, and the cost."""
    from slurmgen.script.render import one_line, summary

    count = plan.world_size
    half = _MAX_ROWS // 2 if count > _MAX_ROWS else count
    rows = [_row(seat(plan, index), plan) for index in range(half)]
    if half < count:
        rows.append((f"… {count - 2 * half} more …", "", "", "", ""))
        rows += [_row(seat(plan, index), plan) for index in range(count - half, count)]
    header = ("rank", "node", "local rank", "GPU", "CPUs")
    widths = [
        max(len(row[column]) for row in [header, *(r for r in rows if r[1])])
        for column in range(len(header))
    ]
    lines = [f"{one_line(plan.job_name)}: {summary(plan)}", ""]
    for row in (header, *rows):
        lines.append("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip())
    return "\n".join([*lines, "", *cost_lines(plan)]) + "\n"


def _row(seat: Seat, plan: JobPlan) -> tuple[str, str, str, str, str]:
    kind = f" {plan.gpu_type}" if plan.gpu_type else ""
    gpus = ",".join(map(str, seat.gpus)) + kind if seat.gpus else "-"
    return (str(seat.rank), str(seat.node), str(seat.local_rank), gpus, str(seat.cpus or "default"))
