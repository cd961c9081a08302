"""What a shell's variables are at each of its commands, without a copy for each of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.budget import spend

if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterator, ValuesView

    from slurmgen.reading.shell.words import Word


class Assignment(NamedTuple):
    """`name=value`; `words` holds the elements where the value is an array.

    exported: whether programs see it. where: the shell that sets it. start, end: of the
    whole `name=value`. conditional: whether it stands in a branch, loop or function.
    """

    name: str
    value: Word
    exported: bool
    where: str
    start: int
    end: int
    words: tuple[Word, ...] | None = None
    conditional: bool = False
    append: bool = False


class _ByName(Mapping[str, "Assignment"]):
    """A mapping whose `get` is quick, and which is put together to be gone through."""

    __slots__ = ()

    @abstractmethod
    def get(self, name: str, default: Assignment | None = None) -> Assignment | None:  # type: ignore[override]
        """A variable by its name."""

    @abstractmethod
    def known(self) -> dict[str, Assignment]:
        """All of them, in the order in which they were first set."""

    def __getitem__(self, name: str) -> Assignment:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.known())

    def __len__(self) -> int:
        return len(self.known())

    def items(self) -> ItemsView[str, Assignment]:
        return self.known().items()

    def values(self) -> ValuesView[Assignment]:
        return self.known().values()


class Variables(_ByName):
    """Variables by name, never changed in place: `but` makes the ones that come next.

    A change is a layer over what was there. Layers are merged as a binary counter carries, so
    that n changes cost O(n log n) in all, and a look-up O(log n).
    """

    __slots__ = ("_below", "_exported", "_layer", "_size")

    def __init__(self, outer: Mapping[str, Assignment] | None = None) -> None:
        self._layer: Mapping[str, Assignment | None] = {} if outer is None else outer
        self._below: Variables | None = None
        # What an outer shell hands on is never merged.
        self._size: float = float("inf")
        self._exported: Exported | None = None

    def but(self, name: str, assignment: Assignment | None) -> Variables:
        """The same, with one variable set anew; None: it is forgotten."""
        layer: dict[str, Assignment | None] = {name: assignment}
        below: Variables | None = self
        while below is not None and below._size <= len(layer):
            layer = {**below._layer, **layer}
            below = below._below
        changed = Variables(layer)  # type: ignore[arg-type]
        changed._below = below
        changed._size = len(layer)
        return changed

    @property
    def exported(self) -> Exported:
        """Those that programs see; one object for all commands between two changes."""
        if self._exported is None:
            self._exported = Exported(self)
        return self._exported

    def get(self, name: str, default: Assignment | None = None) -> Assignment | None:  # type: ignore[override]
        at: Variables | None = self
        while at is not None:
            if name in at._layer:
                return at._layer[name] or default
            at = at._below
        return default

    def known(self) -> dict[str, Assignment]:
        """All of them, in the order in which they were first set."""
        layers = []
        at: Variables | None = self
        while at is not None:
            layers.append(at._layer)
            at = at._below
        found: dict[str, Assignment | None] = {}
        for layer in reversed(layers):
            found.update(layer)
        spend(len(found))
        return {name: value for name, value in found.items() if value is not None}


class Exported(_ByName):
    """The environment of a command: what is exported, and what stands before its name."""

    __slots__ = ("_own", "_variables")

    def __init__(self, variables: Variables, own: Mapping[str, Assignment] | None = None) -> None:
        self._variables = variables
        self._own = own or {}

    def get(self, name: str, default: Assignment | None = None) -> Assignment | None:  # type: ignore[override]
        if name in self._own:
            return self._own[name]
        found = self._variables.get(name)
        return found if found is not None and found.exported else default

    def known(self) -> dict[str, Assignment]:
        """All of them, in the order in which they were first set."""
        known = self._variables.known()
        return {**{name: value for name, value in known.items() if value.exported}, **self._own}
