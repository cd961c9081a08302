"""A plan as an SVG: a box per node, a cell per GPU, the ranks that use it inside."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from slurmgen import launchers
from slurmgen.script.cost import cost_lines
from slurmgen.script.placement import Seat, seat, seats_on
from slurmgen.script.render import one_line, summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.script.plan import JobPlan

_CELL_WIDTH, _CELL_HEIGHT, _GAP, _MARGIN = 104, 64, 8, 24
_TITLE, _FOOTER = 68, 52
_COLUMNS = 8  # cells in a row of one node
_MAX_NODES = 16  # boxes, and a line for the rest
_MAX_CELLS = 128  # of one node; the last one stands for the rest
_STYLE = """
  text { font-family: system-ui, "Helvetica Neue", Arial, sans-serif; fill: #1f2933; }
  .title { font-size: 18px; font-weight: 600; } .text { font-size: 13px; fill: #52606d; }
  .node { fill: #f5f7fa; stroke: #9aa5b1; } .cell { fill: #d9f0e3; stroke: #3f9142; }
  .idle { fill: #fde8e8; stroke: #c53030; stroke-dasharray: 4 3; }
  .cpu { fill: #dceefb; stroke: #2680c2; } .rank { font-size: 15px; font-weight: 600; }
  .small { font-size: 11px; fill: #52606d; }
"""


# A cell of a node: its class, and a bold and a small line of text.
Cell = tuple[str, str, str]


def draw(plan: JobPlan) -> str:
    """The SVG document; the same bytes for the same plan."""
    shown = range(min(plan.nodes, _MAX_NODES))
    boxes = [(f"node {node}", _cells(plan, node)) for node in shown]
    more = ""
    if len(shown) < plan.nodes:
        more = f"and {plan.nodes - len(shown)} more nodes"
        if plan.layout.ntasks % plan.nodes == 0:
            more += " with the same ranks per node"
    return document(one_line(plan.job_name), summary(plan), boxes, more, cost_lines(plan))


def document(
    title: str,
    subtitle: str,
    boxes: Sequence[tuple[str, Sequence[Cell]]],
    more: str,
    lines: Sequence[str],
) -> str:
    """An SVG of named boxes of cells, a line for those that are not drawn, and lines below."""
    columns = min(_COLUMNS, max((len(cells) for _, cells in boxes), default=1))
    width = max(640, 2 * _MARGIN + columns * (_CELL_WIDTH + _GAP) + _GAP)
    y = _TITLE
    parts: list[str] = []
    for name, cells in boxes:
        box, height = _node(name, cells, y, width)
        parts.append(box)
        y += height + _GAP
    if more:
        parts.append(_text(_MARGIN, y + 16, more, "text"))
        y += 28
    for line in lines:
        parts.append(_text(_MARGIN, y + 20, line, "text"))
        y += 20
    height = y + _FOOTER - 20
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">'
    )
    background = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    titles = [_text(_MARGIN, 30, title, "title"), _text(_MARGIN, 52, subtitle, "text")]
    body = "\n".join([f"<style>{_STYLE}</style>", background, *titles, *parts])
    return f"{head}\n{body}\n</svg>\n"


def _cells(plan: JobPlan, node: int) -> list[Cell]:
    """(class, bold line, small line) of each cell of one node."""
    numbers = seats_on(plan, node)
    here = [seat(plan, number) for number in numbers[:_MAX_CELLS]]
    if plan.gpus_per_node:
        count = plan.gpus_per_node
        cells = [_gpu_cell(plan, here, gpu) for gpu in range(min(count, _MAX_CELLS))]
    else:
        count = len(numbers)
        cells = [("cpu", f"rank {found.rank}", _cpus(found.cpus)) for found in here]
    if count > _MAX_CELLS:
        cells[-1] = ("cell", f"{count - _MAX_CELLS + 1} more", "")
    return cells


def _gpu_cell(plan: JobPlan, here: list[Seat], gpu: int) -> Cell:
    user = next((found for found in here if gpu in found.gpus), None)
    if user is None:
        return ("idle", "idle", f"GPU {gpu}")
    name = "one process" if launchers.find(plan.launcher).is_one_process else f"rank {user.rank}"
    return ("cell", name, f"GPU {gpu} · {_cpus(user.cpus)}")


def _cpus(count: int | None) -> str:
    if count is None:
        return "default CPUs"
    return f"{count} CPU{'s' if count > 1 else ''}"


def _node(name: str, cells: Sequence[Cell], y: int, width: int) -> tuple[str, int]:
    rows = -(-max(1, len(cells)) // _COLUMNS)
    height = 30 + rows * (_CELL_HEIGHT + _GAP)
    x, inner = _MARGIN, width - 2 * _MARGIN
    parts = [
        f'<rect class="node" x="{x}" y="{y}" width="{inner}" height="{height}" rx="6"/>',
        _text(x + 10, y + 20, name, "text"),
    ]
    for index, (kind, bold, small) in enumerate(cells):
        left = x + _GAP + (index % _COLUMNS) * (_CELL_WIDTH + _GAP)
        top = y + 28 + (index // _COLUMNS) * (_CELL_HEIGHT + _GAP)
        parts.append(
            f'<rect class="{kind}" x="{left}" y="{top}" width="{_CELL_WIDTH}" '
            f'height="{_CELL_HEIGHT - 4}" rx="4"/>'
        )
        parts.append(_text(left + 10, top + 26, bold, "rank"))
        parts.append(_text(left + 10, top + 46, small, "small"))
    return "\n".join(parts), height


def _text(x: int, y: int, text: str, kind: str) -> str:
    # XML has no form for control characters, and one that turns the reading round could lie.
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(shown)}</text>'
