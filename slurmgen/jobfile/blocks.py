"""Mappings of keys to values, read without Pydantic: the job file itself, `setup`, `requeue`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from slurmgen.jobfile.readers import Doubtful, Reader

if TYPE_CHECKING:
    from collections.abc import Mapping


class Block(SimpleNamespace):
    """Values as attributes; as in Pydantic, `model_fields_set` has the keys that were given."""

    __slots__ = ("model_fields_set",)
    model_fields_set: set[str]

    def __copy__(self) -> Block:
        other = Block(**self.__dict__)
        other.model_fields_set = set(self.model_fields_set)
        return other


def read_block(
    data: Mapping[str, Any], known: Mapping[str, Reader], defaults: Mapping[str, Any]
) -> Block:
    """The values of `data` by their keys' readers; raises Refusal and Doubtful."""
    values = dict(defaults)
    for key, value in data.items():
        reader = known.get(key)
        if reader is None:
            raise Doubtful
        # An empty key is the default of those that may be None, and wrong for the others.
        if value is None:
            if defaults[key] is not None:
                raise Doubtful
        else:
            values[key] = reader(value)
    block = Block(**values)
    block.model_fields_set = set(data)
    return block
