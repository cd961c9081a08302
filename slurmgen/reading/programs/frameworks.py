"""Which frameworks a program uses, and where it makes their trainers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.reading.programs.torch_names import (
    LIGHTNING_CLI,
    LIGHTNING_FABRIC,
    LIGHTNING_TRAINER,
)

if TYPE_CHECKING:
    from slurmgen.reading.programs.facts import Call
    from slurmgen.reading.programs.program import Program
    from slurmgen.reading.programs.values import Value

# Import -> the framework it stands for; one that places ranks and devices itself.
_IMPORTS = {
    "lightning": "lightning",
    "pytorch_lightning": "lightning",
    "lightning_fabric": "lightning",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "deepspeed": "deepspeed",
    "horovod": "horovod",
    "ray": "ray",
    "submitit": "submitit",
    "colossalai": "colossalai",
    "mmengine": "mmengine",
    "mmcv": "mmengine",
    "composer": "composer",
    "ignite": "ignite",
    "fairscale": "fairscale",
    "apex": "apex",
    "megatron": "megatron",
    "nemo": "nemo",
    "torch_xla": "xla",
    "fastai": "fastai",
    "catalyst": "catalyst",
    "detectron2": "detectron2",
    "ultralytics": "ultralytics",
    "torchtune": "torchtune",
    "torchtitan": "torchtitan",
    "dask": "dask",
    "mpi4py": "mpi4py",
    "dmlcloud": "dmlcloud",
    "slurmgen": "slurmgen",
    "trl": "transformers",
    "sentence_transformers": "transformers",
    "torchrunx": "torchrunx",
    "tensorflow": "tensorflow",
    "jax": "jax",
}

# These bring up the group and choose the device of each rank.
CARING = frozenset(set(_IMPORTS.values()) - {"apex", "mpi4py", "fairscale", "tensorflow", "jax"})

_TRANSFORMERS_TRAINERS = re.compile(
    r"^(transformers|trl|sentence_transformers)\.(\w+\.)*(\w*Trainer|TrainingArguments|"
    r"Seq2SeqTrainingArguments|\w+Config\.to_training_arguments)$"
)


def frameworks(program: Program) -> frozenset[str]:
    """The frameworks that are imported: lightning, accelerate, deepspeed, ..."""
    roots = {item.name.partition(".")[0] for item in program.imports}
    found = {_IMPORTS[root] for root in roots if root in _IMPORTS}
    if "transformers" in found and not _trains_with_transformers(program):
        found.discard("transformers")
    return frozenset(found)


def _trains_with_transformers(program: Program) -> bool:
    if any(_TRANSFORMERS_TRAINERS.match(call.name) for call in program.calls):
        return True
    bases = [
        program.value(node, site)
        for unit in program.units
        for scope in unit.table.scopes.values()
        for node, site in scope.bases
    ]
    return any(_TRANSFORMERS_TRAINERS.match(base.name) for base in bases)


def transformers_trainers(program: Program) -> list[Call]:
    """Where a Trainer of transformers (or one derived from it) is made."""
    found = []
    for call in program.calls:
        if _TRANSFORMERS_TRAINERS.match(call.name) and call.name.endswith("Trainer"):
            found.append(call)
            continue
        scope = program.class_of(call.value)
        if scope is not None and any(
            _TRANSFORMERS_TRAINERS.match(program.value(node, site).name)
            for node, site in scope.bases
        ):
            found.append(call)
    return found


def lightning_trainers(program: Program) -> list[Call]:
    """Where Lightning's Trainer or Fabric is made, or the command line that makes one."""
    return list(program.called(LIGHTNING_TRAINER, LIGHTNING_FABRIC, LIGHTNING_CLI))


def class_bases(program: Program, value: Value) -> list[str]:
    """The dotted names of the foreign bases of the class a value is an instance of."""
    scope = program.class_of(value)
    names = []
    seen: set[str] = set()
    pending = [scope] if scope is not None else []
    while pending:
        item = pending.pop()
        if item.name in seen:
            continue
        seen.add(item.name)
        for node, site in item.bases:
            base = program.value(node, site)
            names.append(base.name)
            parent = program.scope_of(base)
            if parent is not None:
                pending.append(parent)
    return names
