"""Directives -> what a job asks for, and what Slurm makes of it.

sbatch(1) and what 20.11 to 26.05 answer: without --ntasks there is a task per node, or as
many as --ntasks-per-node and the like say; --ntasks beside --ntasks-per-node makes the
latter a maximum; more nodes than tasks become as many as there are tasks. What depends on
the cluster is None.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from slurmgen.errors import Refusal
from slurmgen.slurm.grammars.gres import Gpus
from slurmgen.slurm.grammars.memory import parse_memory
from slurmgen.slurm.grammars.nodes import expand_hostlist
from slurmgen.slurm.grammars.time import parse_time
from slurmgen.slurm.options import catalog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurmgen.slurm.directives import Directive, DirectiveBlock

_NODES = re.compile(r"(\d{1,9})([kKmM]?)(?:-(\d{1,9})([kKmM]?))?")
_FACTORS = {"": 1, "k": 1024, "m": 1024 * 1024}
_GPU = re.compile(r"(?:gres[/:])?gpu(?:[:=](?P<rest>.*))?")
_TYPED = re.compile(
    r"(?:(?P<kind>[A-Za-z][\w.+-]*|\d+g\.\d+gb[\w.+-]*|\d+[A-Za-z][\w.+-]*):)?(?P<count>\d{1,6})"
)


class _Value:
    """An attribute of a Request that is the value of the option of that name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.option = name.replace("_", "-")


class _Text(_Value):
    def __get__(self, request: Request, owner: type) -> str | None:
        return request.value(self.option)


class _Number(_Value):
    def __get__(self, request: Request, owner: type) -> int | None:
        text = request.value(self.option) or ""
        is_number = text.isascii() and text.isdigit() and len(text) < 10
        return int(text) if is_number else None


class _Memory(_Value):
    def __get__(self, request: Request, owner: type) -> int | None:
        text = request.value(self.option)
        try:
            return None if text is None else parse_memory(text)
        except Refusal:
            return None


class Request:
    """One component of a job. None: not given, or not known (a `$` in the value).

    time: seconds (None: not given, or no limit). mem, mem_per_cpu, mem_per_gpu: MiB.
    gpus_per_node: from --gres or --gpus-per-node. total_nodes, total_tasks: of the
    component. tasks_per_node: the most on one node. node_gpus: GPUs on each node, 0 where
    none are asked for.
    """

    def __init__(self, directives: Sequence[Directive], *, is_known: bool = True) -> None:
        """is_known: False where something else (`#PBS`) has a say in it."""
        self.directives = tuple(directives)
        self.is_known = is_known
        self._last = {catalog.ALIASES.get(d.option, d.option): d for d in self.directives}
        requeue, no_requeue = self._last.get("requeue"), self._last.get("no-requeue")
        if requeue is not None and no_requeue is not None:
            # One takes back the other.
            del self._last["requeue" if requeue.start < no_requeue.start else "no-requeue"]

    def directive(self, name: str) -> Directive | None:
        """The one that counts, by its long name with dashes or underscores."""
        option = name.replace("_", "-")
        return self._last.get(catalog.ALIASES.get(option, option))

    def value(self, name: str) -> str | None:
        """The value as it is written, None where the option or its value is not given."""
        directive = self.directive(name)
        return None if directive is None else directive.value

    def gives(self, *names: str) -> bool:
        """Whether any of the options is given."""
        return any(self.directive(name) is not None for name in names)

    # --- as it is written -------------------------------------------------------------

    array = _Text()
    error = _Text()
    export = _Text()
    gpu_bind = _Text()
    nodelist = _Text()
    output = _Text()
    signal = _Text()

    cpus_per_gpu = _Number()
    cpus_per_task = _Number()
    ntasks = _Number()
    ntasks_per_gpu = _Number()
    ntasks_per_node = _Number()

    mem = _Memory()
    mem_per_cpu = _Memory()
    mem_per_gpu = _Memory()

    @cached_property
    def nodes(self) -> tuple[int, int] | None:
        """The least and the most; lists of counts (from 23.02) by their ends."""
        text = self.value("nodes") or ""
        found = _NODES.fullmatch(text)
        if found is None:
            counts = re.fullmatch(r"\d{1,9}(?:[-,:]\d{1,9})*", text)
            numbers = sorted(map(int, re.findall(r"(?<!:)\b\d+", text))) if counts else []
            return (numbers[0], numbers[-1]) if numbers else None
        least = int(found[1]) * _FACTORS[found[2].lower()]
        most = int(found[3]) * _FACTORS[found[4].lower()] if found[3] else least
        return least, most

    @cached_property
    def gpus_per_node(self) -> int | None:
        """From --gpus-per-node, else from --gres."""
        gpus = self._gpus("gpus-per-node") or self._gres_gpus
        return None if gpus is None else gpus.number

    @cached_property
    def gpus(self) -> int | None:
        """--gpus: of the whole job."""
        gpus = self._gpus("gpus")
        return None if gpus is None else gpus.number

    @cached_property
    def gpus_per_task(self) -> int | None:
        """--gpus-per-task, or the GPUs of --tres-per-task."""
        gpus = self._gpus("gpus-per-task") or _gres(self.value("tres-per-task"))
        return None if gpus is None else gpus.number

    @cached_property
    def gpus_per_socket(self) -> int | None:
        """--gpus-per-socket."""
        gpus = self._gpus("gpus-per-socket")
        return None if gpus is None else gpus.number

    @cached_property
    def gpu_type(self) -> str | None:
        """The one type that any of them names."""
        named = [self._gpus(f"gpus{suffix}") for suffix in ("-per-node", "", "-per-task")]
        named += [self._gpus("gpus-per-socket"), self._gres_gpus]
        return next((gpus.kind for gpus in named if gpus is not None and gpus.kind), None)

    @cached_property
    def time(self) -> int | None:
        """--time in seconds."""
        try:
            return parse_time(self.value("time") or "0")
        except Refusal:
            return None

    @property
    def exclusive(self) -> bool:
        """Whether the job has whole nodes to itself: --exclusive without a value."""
        directive = self.directive("exclusive")
        return directive is not None and directive.value is None

    # --- what Slurm makes of it -------------------------------------------------------

    @cached_property
    def total_nodes(self) -> int | None:
        """How many nodes the job gets."""
        if not self.is_known or self._unread("nodes", "ntasks", "nodefile"):
            return None
        if self.nodes is not None:
            least, most = self.nodes
            if self.ntasks is not None and self.ntasks < least:
                return max(1, self.ntasks)
            if least == most:
                return max(1, least)
            return 1 if self.ntasks == 1 and least <= 1 else None
        if self.gives("nodelist"):
            return self._listed
        return self._nodes_of_tasks()

    @cached_property
    def _listed(self) -> int | None:
        """The nodes of --nodelist, which is all there are without --nodes and --ntasks."""
        try:
            count = len(set(expand_hostlist(self.nodelist or "")))
        except Refusal:
            return None
        if self.ntasks is None:
            return count
        return max(1, self.ntasks) if self.ntasks <= count else None

    def _nodes_of_tasks(self) -> int | None:
        """Without --nodes: what tasks and GPUs need at least."""
        if self._unread("ntasks-per-node", "gres", "gpus-per-node", "gpus", "gpus-per-task"):
            return None
        each = self.gpus_per_node
        if self.gpus is not None:
            if each:
                return max(1, -(-self.gpus // each))
            return 1 if self.gpus == 1 else None
        tasks = self.ntasks
        if tasks is None or tasks <= 1:
            return 1
        if self.gpus_per_task and each:
            return max(1, -(-tasks * self.gpus_per_task // each))
        if self.ntasks_per_node:
            return max(1, -(-tasks // self.ntasks_per_node))
        return None

    @cached_property
    def total_tasks(self) -> int | None:
        """How many tasks srun starts, unless it is told otherwise."""
        if not self.is_known or self._unread("ntasks", "ntasks-per-node", "ntasks-per-gpu"):
            return None
        if self.ntasks is not None:
            return self.ntasks
        if self.ntasks_per_node is not None:
            return None if self.total_nodes is None else self.ntasks_per_node * self.total_nodes
        if self.ntasks_per_gpu is not None:
            gpus = self._total_gpus()
            return None if gpus is None else self.ntasks_per_gpu * gpus
        if self.gpus is not None and self.gpus_per_task:
            return self.gpus // self.gpus_per_task
        if self.gives("ntasks-per-socket", "ntasks-per-core", "ntasks-per-tres"):
            return None
        if self.gives("gpus-per-task") and not self.gives("nodes"):
            return None
        return self.total_nodes

    def _total_gpus(self) -> int | None:
        if self.gpus is not None:
            return self.gpus
        if self.total_nodes is None or self.gpus_per_node is None:
            return None
        return self.gpus_per_node * self.total_nodes

    @cached_property
    def tasks_per_node(self) -> int | None:
        """The most tasks on one node; at least that many where Slurm spreads them unevenly."""
        tasks, nodes = self.total_tasks, self.total_nodes
        if tasks is not None and nodes is not None:
            return -(-tasks // nodes)
        if tasks is None and self.is_known and not self.gives("ntasks"):
            return self.ntasks_per_node
        return None

    @cached_property
    def node_gpus(self) -> int | None:
        """The GPUs on each node, where all have the same number."""
        if not self.is_known or self._unread("gres", "gpus-per-node", "gpus", "gpus-per-task"):
            return None
        if self.gives("gpus-per-socket", "tres-per-task") and self.gpus_per_task is None:
            return None
        if self.gpus_per_node is not None:
            return self.gpus_per_node
        nodes = self.total_nodes
        if self.gpus is not None:
            return self.gpus if nodes == 1 else (1 if nodes == self.gpus else None)
        if self.gpus_per_task is not None:
            tasks = self.total_tasks
            if nodes is None or tasks is None or tasks % nodes:
                return None
            return self.gpus_per_task * (tasks // nodes)
        return 0

    # --- helpers ----------------------------------------------------------------------

    def _gpus(self, name: str) -> Gpus | None:
        return _counted((self.value(name) or "").split(","))

    @cached_property
    def _gres_gpus(self) -> Gpus | None:
        return _gres(self.value("gres"))

    def _unread(self, *names: str) -> bool:
        """Whether one of the options is given with a value that cannot be read."""
        return any(self.gives(name) and self._reads(name) is None for name in names)

    def _reads(self, name: str) -> object:
        if name == "gres":
            text = (self.value("gres") or "$").lower()
            # Without GPUs in it, it says nothing of them.
            return None if "$" in text else (self._gres_gpus or "gpu" not in text or None)
        if name == "nodefile":
            return None
        return getattr(self, name.replace("-", "_"))


def requests(block: DirectiveBlock) -> tuple[Request, ...]:
    """What each component of the job asks for; one, unless the job is heterogeneous."""
    found = []
    job_wide = catalog.job_wide()
    for component in range(block.components):
        own = [d for d in block.directives if d.component == component]
        inherited = [
            d for d in block.directives if d.component < component and d.option in job_wide
        ]
        found.append(Request([*inherited, *own], is_known=not block.translated))
    return tuple(found)


def _gres(text: str | None) -> Gpus | None:
    """The GPUs in a list of resources."""
    items = []
    for item in (text or "").split(","):
        found = _GPU.fullmatch(item)
        if found is not None:
            items.append((found["rest"] or "1").replace("=", ":"))
    return _counted(items)


def _counted(items: Sequence[str]) -> Gpus | None:
    """The sum of `[type:]count`; a type alone is one GPU. None: one of them is neither."""
    kinds: list[str | None] = []
    total = 0
    for item in items:
        found = _TYPED.fullmatch(item)
        if found is not None:
            kinds.append(found["kind"])
            total += int(found["count"])
        elif re.fullmatch(r"[A-Za-z0-9][\w.+-]*", item) and not item.isdecimal():
            kinds.append(item)
            total += 1
        else:
            return None
    if not kinds:
        return None
    return Gpus(kinds[0] if len(set(kinds)) == 1 else None, total)
