"""What a shell offers when Tab is pressed: values, where typer knows the options by itself.

`slurmgen --install-completion` sets it up. Whatever can't be known is not offered.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.errors import SlurmgenError

if TYPE_CHECKING:
    from collections.abc import Iterable


def job_files(incomplete: str) -> list[str]:
    """YAML files, and the folders on the way to them."""
    folder, _, start = incomplete.rpartition("/")
    where = f"{folder}/" if "/" in incomplete else ""
    try:
        entries = sorted(os.scandir(where or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    found = []
    for entry in entries:
        if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
            continue
        if entry.is_dir():
            found.append(f"{where}{entry.name}/")
        elif entry.name.endswith((".yaml", ".yml")):
            found.append(f"{where}{entry.name}")
    return found


def clusters(incomplete: str) -> list[str]:
    """Profiles by name: the project's and the built-in ones."""
    from slurmgen.commands.init import cluster_names

    return _starting(cluster_names(Path()), incomplete)


def templates(incomplete: str) -> list[str]:
    """Templates by name, the project's own too."""
    from slurmgen.commands.template import template_names

    try:
        return _starting(template_names(), incomplete)
    except SlurmgenError:
        return []


def rules(incomplete: str) -> list[str]:
    """Rules of lint by name or code, also behind a comma."""
    from slurmgen.lint import registry

    before, comma, last = incomplete.rpartition(",")
    known = [word for rule in registry.rules() for word in (rule.name, rule.code)]
    # A code only where one is begun: the names say more.
    wanted = [word for word in known if word.startswith("SG") == last.startswith("SG")]
    return [f"{before}{comma}{word}" for word in _starting(wanted, last)]


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
