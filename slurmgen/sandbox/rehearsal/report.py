"""What a rehearsal has shown: one screen of text, JSON, or a picture."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from slurmgen.sandbox.rehearsal.fault import counted, listing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurmgen.diagnostics import Diagnostic
    from slurmgen.sandbox.rehearsal.groups import Group, Rank
    from slurmgen.sandbox.rehearsal.judge import Verdict
    from slurmgen.sandbox.rehearsal.run import Outcome
    from slurmgen.sandbox.rehearsal.shape import Rehearsed
    from slurmgen.script.picture import Cell

# A screen: as many nodes, and as many letters of a program, as one shows.
_MOST_NODES, _WIDTH = 12, 88
_MAX_BOXES = 16


def as_text(
    name: str, rehearsed: Rehearsed, outcome: Outcome, verdict: Verdict, notes: Sequence[str]
) -> str:
    """A heading, what ran, and where; without the faults."""
    shape, job = rehearsed.shape, outcome.job
    nodes, gres = counted(shape.node_count, "node"), shape.node_groups[0].gres
    what = f"of {gres or 'no GPU'}" if rehearsed.cluster is None else f"like {rehearsed.cluster}"
    lines = [f"{name}: rehearsed on Slurm {outcome.version}, {nodes} {what}"]
    if job is not None:
        rows = [
            ("took", f"{job.seconds:.1f} s, and {outcome.seconds_to_start:.1f} s to start Slurm")
        ]
        rows += _rows(outcome, verdict)
        rows += [("note", note) for note in notes]
        lines += ["", *(f"{title:<10}{text}" for title, text in rows)]
        lines += _placement(verdict)
    return "\n".join(lines) + "\n"


def _rows(outcome: Outcome, verdict: Verdict) -> list[tuple[str, str]]:
    rows = []
    for run in verdict.runs[:1]:
        for group in run[:4]:
            rows.append(("program", _shown(group.ranks[0].program.argv)))
            rows.append(("ranks", _ranks(group)))
            meeting = {_meeting(rank) for rank in group.ranks} - {""}
            if meeting:
                rows.append(("meet at", listing(sorted(meeting))))
    arrays = {r.program.array_task for run in verdict.runs for g in run for r in g.ranks} - {None}
    if arrays:
        rows.append(("array", f"{counted(len(arrays), 'task')}, each with {_each(verdict)}"))
    restarts = max((group.restart for run in verdict.runs for group in run), default=0)
    if restarts:
        rows.append(("came back", "once" if restarts == 1 else f"{restarts} times"))
    if outcome.job is not None:
        codes = Counter(state.exit_code.partition(":")[0] for state in outcome.job.states)
        text = f"status {listing(sorted(codes))}"
        if outcome.failing is not None:
            failed = [s.exit_code.partition(":")[0] for s in outcome.failing.states]
            code = listing(sorted(set(failed)))
            text += f"; {code} where the program fails"
        rows.append(("ended", text))
    return rows


def _each(verdict: Verdict) -> str:
    sizes = {sum(len(group.ranks) for group in run) for run in verdict.runs}
    return " or ".join(counted(size, "rank") for size in sorted(sizes))


def _ranks(group: Group) -> str:
    worlds = {rank.world for rank in group.ranks}
    where = "in a step" if group.in_step else "from the batch shell"
    each = f"world size {listing(sorted(map(str, worlds)))}"
    return f"{len(group.ranks)} on {counted(len(group.nodes), 'node')}, {where}, {each}"


def _meeting(rank: Rank) -> str:
    address, port = (rank.program.env.get(f"MASTER_{name}") for name in ("ADDR", "PORT"))
    return "" if address is None else f"{address}:{port or '?'}"


def _shown(argv: Sequence[str]) -> str:
    text = "".join(c if c.isprintable() else "?" for c in " ".join(argv))
    return text if len(text) <= _WIDTH else text[: _WIDTH - 2] + " …"


def _placement(verdict: Verdict) -> list[str]:
    if not verdict.runs:
        return []
    by_node: dict[str, list[Rank]] = {}
    for group in verdict.runs[0]:
        for rank in group.ranks:
            by_node.setdefault(rank.node, []).append(rank)
    nodes = sorted(by_node, key=lambda node: (len(node), node))
    lines = [""]
    for node in nodes[:_MOST_NODES]:
        ranks = sorted(by_node[node], key=lambda rank: (rank.local or 0, rank.rank or 0))
        cells = [f"{rank.rank}:{_gpu(rank)}" for rank in ranks]
        lines.append(f"{node:<10}{'  '.join(cells[:16])}{'  …' if len(cells) > 16 else ''}")
    if len(nodes) > _MOST_NODES:
        lines.append(f"and {len(nodes) - _MOST_NODES} more nodes")
    return lines


def _gpu(rank: Rank) -> str:
    if rank.gpus is None:
        return "none"
    return "GPU" + "+".join(rank.gpus) if rank.gpus else "CPU"


def as_json(
    name: str,
    rehearsed: Rehearsed,
    outcome: Outcome,
    verdict: Verdict,
    found: Sequence[Diagnostic],
    notes: Sequence[str],
) -> str:
    """One object: the shape, each run with its ranks, how the job ended, and the faults."""
    shape, job = rehearsed.shape, outcome.job
    content: dict[str, Any] = {
        "job": name,
        "slurm": outcome.version,
        "cluster": rehearsed.cluster,
        "nodes": [
            {"count": group.nodes, "gpus": group.gpus_per_node, "gpu_type": group.gpu_type or None}
            for group in shape.node_groups
        ],
        "seconds": round(job.seconds, 2) if job else None,
        "exit_codes": [state.exit_code for state in job.states] if job else [],
        "exit_codes_where_it_fails": (
            [state.exit_code for state in outcome.failing.states] if outcome.failing else None
        ),
        "runs": [[_group(group) for group in run] for run in verdict.runs],
        "notes": list(notes),
        "faults": [
            {
                "path": d.location.path,
                "line": d.location.line,
                "column": d.location.column,
                "rule": d.rule,
                "severity": d.severity,
                "message": d.message,
                "why": d.why,
                "fix": d.fix,
            }
            for d in found
        ],
    }
    return json.dumps(content, indent=2) + "\n"


def _group(group: Group) -> dict[str, Any]:
    return {
        "job_id": group.job,
        "restart": group.restart,
        "step": group.step,
        "ranks": [
            {
                "rank": rank.rank,
                "world_size": rank.world,
                "local_rank": rank.local,
                "node": rank.node,
                "gpus": None if rank.gpus is None else list(rank.gpus),
                "array_task": rank.program.array_task,
                "master": _meeting(rank) or None,
                "argv": list(rank.program.argv),
                "folder": rank.program.cwd,
            }
            for rank in sorted(group.ranks, key=lambda rank: (rank.rank or 0, rank.node))
        ],
    }


def as_picture(name: str, outcome: Outcome, verdict: Verdict, found: Sequence[Diagnostic]) -> str:
    """The first run: a box for each node, a cell for each GPU that the job has there."""
    from slurmgen.script.picture import document

    ranks = [r for group in (verdict.runs or ((),))[0] for r in group.ranks]
    gpus: Mapping[str, frozenset[str]] = {}
    if outcome.job is not None and verdict.runs:
        gpus = outcome.job.gpus.get(verdict.runs[0][0].job, {})
    nodes = sorted({*gpus, *(r.node for r in ranks)}, key=lambda node: (len(node), node))
    boxes = [
        (node, _cells([r for r in ranks if r.node == node], sorted(gpus.get(node, ()), key=int)))
        for node in nodes[:_MAX_BOXES]
    ]
    more = f"and {len(nodes) - _MAX_BOXES} more nodes" if len(nodes) > _MAX_BOXES else ""
    subtitle = f"What ran, on Slurm {outcome.version}: {counted(len(ranks), 'process')}."
    said = [d.message for d in found] or ["nothing is wrong"]
    return document(name, subtitle, boxes, more, said)


def _cells(ranks: Sequence[Rank], gpus: Sequence[str]) -> list[Cell]:
    if not gpus:
        return [("cpu", f"rank {rank.rank}", "no GPU") for rank in ranks]
    cells: list[Cell] = []
    for gpu in gpus:
        users = [rank for rank in ranks if gpu in (rank.gpus or ())]
        if not users:
            cells.append(("idle", "idle", f"GPU {gpu}"))
        elif len(users) == 1:
            cells.append(("cell", f"rank {users[0].rank}", f"GPU {gpu}"))
        else:
            cells.append(("idle", f"{len(users)} ranks", f"GPU {gpu}"))
    return cells
