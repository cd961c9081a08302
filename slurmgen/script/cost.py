"""What a job takes and costs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurmgen.script.plan import JobPlan


def cost_lines(plan: JobPlan) -> list[str]:
    """What the job takes and costs, a line each."""
    gpus = plan.nodes * plan.gpus_per_node
    each = plan.cpus_per_task
    cpus = 0 if each is None else plan.layout.ntasks * each
    nodes = f"{plan.nodes} node{'s' if plan.nodes > 1 else ''}"
    kind = f" ({plan.gpu_type})" if plan.gpu_type else ""
    devices = f", {gpus} GPU{'s' if gpus > 1 else ''}{kind}" if gpus else ""
    counted = f"{cpus} CPUs" if cpus else "CPUs by default"
    lines = [f"takes  {nodes}{devices}, {counted}{_memory(plan)}"]
    if plan.time is None:
        return [*lines, "costs  unknown: no time limit is given, so the partition's counts"]
    if not gpus and not cpus:
        return [*lines, "costs  unknown: how many CPUs a task gets is left to the site"]
    hours = plan.time / 3600
    unit, amount = ("GPU-hours", gpus * hours) if gpus else ("CPU-hours", cpus * hours)
    cost = f"costs  at most {amount:,.1f} {unit}: {gpus or cpus} x {hours:,.2f} h"
    if plan.array is not None:
        tasks = plan.array.tasks
        cost += f", times {tasks} array tasks = {amount * tasks:,.1f} {unit}"
    return [*lines, cost]


def _memory(plan: JobPlan) -> str:
    if plan.mem is None:
        return ""
    option, value = plan.mem
    per = {"mem": "per node", "mem-per-cpu": "per CPU", "mem-per-gpu": "per GPU"}[option]
    return f", all memory {per}" if value == "0" else f", {value} {per}"
