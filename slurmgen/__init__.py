"""One job.yaml in, one sbatch script out that runs PyTorch right on Slurm.

`from slurmgen import Job, render, submit, lint`: the same from Python; see `slurmgen.api`.
"""

# Imported by every command and on every compute node: keep it this light. What is offered
# besides the version is declared in __init__.pyi, and imported when it is first asked for.
import sys

__version__ = "0.1.0"
__all__ = ["Job", "__version__", "lint", "render", "submit"]

_OFFERED = ("Job", "lint", "render", "submit")


class _Package(type(sys)):  # type: ignore[misc]
    """The package, of which one function is called as one of its rooms is."""

    def __getattr__(self, name: str) -> object:
        if name not in _OFFERED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from slurmgen import api

        return getattr(api, name)

    def __setattr__(self, name: str, value: object) -> None:
        # An import of slurmgen.lint, which stays importable by that name.
        if name not in _OFFERED:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_OFFERED})


sys.modules[__name__].__class__ = _Package
