"""srun's options, and those of pyxis that take a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.shell.options import NO, Grammar, table
from slurmgen.slurm.options import catalog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.reading.shell.words import Word

# Of pyxis.
_OF_PLUGINS = "container-image container-mounts container-workdir container-name container-env"
_KNOWN = catalog.srun_options()
SRUN = Grammar(
    {name: option.argument for name, option in _KNOWN.items()} | table(_OF_PLUGINS),
    {letter: option.name for letter, option in catalog.by_letter(_KNOWN).items()},
    unknown=NO,
)
# Spellings of one thing.
_ALIASES = {**catalog.ALIASES, "tres-bind": "gpu-bind"}


class Step(NamedTuple):
    """An srun and its options by long name.

    outer: the srun inside whose task it stands. opaque: some options are in a variable
    nobody knows. start, end: of the word `srun`.
    """

    options: Mapping[str, Word]
    outer: Step | None
    opaque: bool
    start: int
    end: int

    @property
    def nested(self) -> bool:
        """Whether it stands inside a task of another srun."""
        return self.outer is not None

    def option(self, *names: str) -> Word | None:
        """The value of the first of the options that is given."""
        return next((self.options[name] for name in names if name in self.options), None)


def step(options: Mapping[str, Word], *, outer: Step | None, opaque: bool, word: Word) -> Step:
    """The Step of parsed options, each under one name."""
    plain = {_ALIASES.get(name, name): value for name, value in options.items()}
    return Step(plain, outer, opaque, word.start, word.end)
