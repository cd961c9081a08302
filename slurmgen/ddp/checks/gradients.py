"""The checks for ranks whose models drift apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.ddp.checks.facts import COMPARED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slurmgen.ddp.checks.facts import Facts, Sample

# Ranks that reduced together agree to the bit, on other GPUs nearly so; other data is far off.
_TOLERANCE = 1e-3

UNWRAPPED = (
    "each rank trains a model of its own, and all but one of them are lost: gradients differ"
    " between the ranks and nothing averages them; wrap the model in DistributedDataParallel"
    " (model = ddp.wrap(model)) and call what that returns"
)


def check(everyone: Sequence[Facts]) -> Iterator[str]:
    """Models that start or drift apart between the ranks.

    Mistake: a model that no DistributedDataParallel wraps, or parameters added after it was
    wrapped; or one that is wrapped, but called past its wrapper, which then never averages; or
    gradients averaged by hand from different first weights.
    Why: each rank trains on its share alone, and only rank 0's result is kept.
    Fix: ``ddp.wrap``, and call what it returns; or start from the same weights.

    Silent where gradients are averaged by hand, where parameters are sharded, and where the ranks
    hold different parts of one model.
    """
    if len(everyone) < 2:
        return
    for place in range(min(len(one.optimizers) for one in everyone)):
        stepped = [one.optimizers[place] for one in everyone]
        kinds = {one.kind for one in stepped}
        if len(kinds) > 1 or kinds <= {"fsdp", "other"}:
            continue
        wrapped = _comparable([one.wrapped for one in stepped])
        bare = _comparable([one.bare for one in stepped])
        if wrapped and _apart(wrapped) > 0.5:
            yield (
                "the model is wrapped in DistributedDataParallel but gradients differ between the"
                " ranks: it was called past its wrapper, or every backward was under no_sync();"
                " call the wrapper itself, model(inputs), not model.module(inputs)"
            )
            return
        if not bare:
            continue
        apart = _apart(bare)
        if kinds == {"bare"} and apart > (0.5 if _same_start(bare) else 0.999):
            yield UNWRAPPED
            return
        if kinds == {"ddp"} and apart > 0.5 and _same_start(bare):
            yield (
                f"an optimizer steps {bare[0].count} parameter(s) that are not in the"
                " DistributedDataParallel of the others, and their gradients differ between the"
                " ranks: add them to the model before it is wrapped, or wrap their module too"
            )
            return
        if kinds == {"bare"} and apart == 0 and not _same_start(bare):
            yield (
                "the ranks average their gradients but started from different weights, and stay"
                " apart: call torch.manual_seed(N) with the same N before the model is made, or"
                " broadcast its parameters from rank 0 as DistributedDataParallel does"
            )
            return


def partly_shared(everyone: Sequence[Facts]) -> bool:
    """Whether ranks agree on some gradients and not on others, as those of parts of one model."""
    for stepped in zip(*(one.optimizers for one in everyone), strict=False):
        bare = [one.bare for one in stepped]
        if any(bare):
            samples = _comparable(bare)
            if samples is None or 0 < _apart(samples) < 1:
                return True
    return False


def _comparable(samples: list[Sample | None]) -> list[Sample] | None:
    """The samples, None unless they are of the same parameters, with all steps."""
    there = [one for one in samples if one is not None]
    if len(there) < len(samples) or len({(one.count, one.names) for one in there}) > 1:
        return None
    return there if all(len(one.gradients) == COMPARED for one in there) else None


def _apart(samples: list[Sample]) -> float:
    """The share of parameters whose gradients differ between ranks in each step.

    Of those that have one; -1 where there is nothing to compare.
    """
    verdicts = []
    for number in range(len(samples[0].values)):
        steps = [[one.gradients[step][number] for one in samples] for step in range(COMPARED)]
        if all(_finite(pair) for pairs in steps for pair in pairs) and all(
            any(norm > 0 for norm, _ in pairs) for pairs in steps
        ):
            verdicts.append(all(_differ(pairs) for pairs in steps))
    return sum(verdicts) / len(verdicts) if verdicts else -1.0


def _same_start(samples: list[Sample]) -> bool:
    return not any(
        _differ([one.values[number] for one in samples]) for number in range(len(samples[0].values))
    )


def _differ(pairs: Sequence[tuple[float, float]]) -> bool:
    limit = _TOLERANCE * max(norm for norm, _ in pairs)
    return any(max(numbers) - min(numbers) > limit for numbers in zip(*pairs, strict=True))


def _finite(pair: tuple[float, float]) -> bool:
    return all(abs(number) < float("inf") for number in pair)
