"""What every model of the spec and of a profile shares."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SpecModel(BaseModel):
    """Frozen, and no key that is not declared."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())
