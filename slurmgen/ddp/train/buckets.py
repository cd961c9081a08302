"""The order in which DDP reduces gradients, kept over a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel


class BucketOrder:
    """Keeps the order in which DDP reduces gradients over a restart.

    DDP sorts its gradients into buckets anew after the first backward, in the order in which they
    became ready. A process that resumes would take its first step with the first, unsorted
    buckets; they sum in another order, and the loss differs in the last bits from then on.
    """

    def __init__(self, parallel: DistributedDataParallel) -> None:
        self._parallel = parallel
        self._parameters = {
            name: parameter
            for name, parameter in parallel.module.named_parameters()
            if parameter.requires_grad and name not in parallel.parameters_to_ignore
        }
        self.names: list[str] = []
        self._handles: list[Any] = []

    def record(self) -> None:
        """Note the order of the next backward."""
        for name, parameter in self._parameters.items():
            self._handles.append(
                parameter.register_post_accumulate_grad_hook(lambda _, name=name: self._note(name))
            )

    def recorded(self) -> None:
        """After a step: stop where the order is known."""
        if self._handles and self.names:
            self._stop()

    def rehearse(self, names: list[str]) -> bool:
        """Let DDP sort its buckets by `names`, with gradients of zero; whether it could.

        To be called on every rank, before the state is restored.
        """
        self._stop()
        parallel, known = self._parallel, self._parameters
        if parallel.find_unused_parameters and not parallel.static_graph:
            return True  # It never sorts them anew.
        unlike = (
            parallel.static_graph
            or parallel.mixed_precision is not None
            or any(getattr(module, "sparse", False) for module in parallel.module.modules())
        )
        if unlike or sorted(names) != sorted(known):
            return False
        self.names = list(names)
        module = parallel.module
        gradients = {name: parameter.grad for name, parameter in known.items()}
        # In its place for two passes: what matters is which gradient comes after which.
        parallel._modules["module"] = _Chain([known[name] for name in names])
        broadcast, parallel.broadcast_buffers = parallel.broadcast_buffers, False
        try:
            for _ in range(2):
                parallel.forward().backward()
        finally:
            parallel._modules["module"] = module
            parallel.broadcast_buffers = broadcast
            for name, parameter in known.items():
                parameter.grad = gradients[name]
        return True

    def _note(self, name: str) -> None:
        if self._parallel.require_backward_grad_sync and name not in self.names:
            self.names.append(name)

    def _stop(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


class _Chain(torch.nn.Module):
    """A forward whose backward has the gradients of `ordered` ready in that order."""

    def __init__(self, ordered: list[torch.nn.Parameter]) -> None:
        super().__init__()
        # A tuple, which doesn't register them.
        self.ordered = tuple(ordered)

    def forward(self) -> torch.Tensor:
        # Autograd runs what was recorded last first.
        terms = [(parameter * 0).sum().real.float() for parameter in reversed(self.ordered)]
        return torch.stack(terms).sum()
