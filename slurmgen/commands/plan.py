"""slurmgen plan: which rank sits where, and what the job costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen import report
from slurmgen.commands.pipeline import plan_job
from slurmgen.errors import EXIT_OK
from slurmgen.files import write_atomically
from slurmgen.placement import Seat, seats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.plan import JobPlan

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
    if svg is None:
        report.out(format_table(plan))
        return EXIT_OK
    from slurmgen.picture import draw

    picture = draw(plan)
    if svg == "-":
        report.out(picture)
    else:
        write_atomically(Path(svg), picture)
    return EXIT_OK


def format_table(plan: JobPlan) -> str:
    """A heading, a row per rank, and the cost."""
    from slurmgen.render import one_line, summary

    rows = [_row(seat, plan) for seat in seats(plan)]
    if len(rows) > _MAX_ROWS:
        half = _MAX_ROWS // 2
        left_out = f"… {len(rows) - 2 * half} more …"
        rows = [*rows[:half], (left_out, "", "", "", ""), *rows[-half:]]
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
    return (str(seat.rank), str(seat.node), str(seat.local_rank), gpus, str(seat.cpus))


def cost_lines(plan: JobPlan) -> list[str]:
    """What the job takes and costs, a line each."""
    gpus = plan.nodes * plan.gpus_per_node
    cpus = plan.layout.ntasks * plan.cpus_per_task
    nodes = f"{plan.nodes} node{'s' if plan.nodes > 1 else ''}"
    kind = f" ({plan.gpu_type})" if plan.gpu_type else ""
    devices = f", {gpus} GPU{'s' if gpus > 1 else ''}{kind}" if gpus else ""
    lines = [f"takes  {nodes}{devices}, {cpus} CPUs{_memory(plan)}"]
    if plan.time is None:
        return [*lines, "costs  unknown: no time limit is given, so the partition's counts"]
    hours = plan.time / 3600
    unit, amount = ("GPU-hours", gpus * hours) if gpus else ("CPU-hours", cpus * hours)
    cost = f"costs  at most {amount:,.1f} {unit}: {gpus or cpus} x {hours:,.2f} h"
    if plan.array is not None:
        from slurmgen.spec.array import parse_array

        tasks = parse_array(plan.array).tasks
        cost += f", times {tasks} array tasks = {amount * tasks:,.1f} {unit}"
    return [*lines, cost]


def _memory(plan: JobPlan) -> str:
    if plan.mem is None:
        return ""
    option, value = plan.mem
    per = {"mem": "per node", "mem-per-cpu": "per CPU", "mem-per-gpu": "per GPU"}[option]
    return f", all memory {per}" if value == "0" else f", {value} {per}"
