"""Where the built-in `templates/` and `configs/` are.

A wheel carries them inside the package; in a checkout (and an editable install) they
lie beside it. The packaged folder is asked first and never the other way round: beside
an installed package is `site-packages`, and a `templates` there is somebody else's.
"""

from __future__ import annotations

from pathlib import Path

from slurmgen.errors import UnavailableError

_PACKAGE = Path(__file__).resolve().parent


def templates_dir() -> Path:
    """The folder of the built-in Jinja2 templates."""
    return _resource_dir("templates")


def configs_dir() -> Path:
    """The folder of the built-in configs: `jobs/` and `clusters/`."""
    return _resource_dir("configs")


def shells_dir() -> Path:
    """The folder of the scripts that make a shell complete slurmgen."""
    return _PACKAGE / "cli" / "shells"


def _resource_dir(name: str) -> Path:
    packaged = _PACKAGE / name
    if packaged.is_dir():
        return packaged
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    raise UnavailableError(
        f"the built-in {name}/ is missing from {_PACKAGE}",
        fix="install slurmgen again: pip install --force-reinstall slurmgen-torch",
    )
