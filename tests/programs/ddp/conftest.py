"""The fixtures of the pure tests of the entrypoint."""

from tests.unit.ddp.conftest import recorded, said

__all__ = ["recorded", "said"]
