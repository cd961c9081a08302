"""The way of a job is one direction: what may import what, and what a command may load."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.imports import PACKAGE, ROOT, imports_of, is_inside

if TYPE_CHECKING:
    from pathlib import Path

QUICKSTART = "configs/jobs/quickstart.yaml"

# What `slurmgen render` may load of slurmgen: these modules, and those inside these packages.
RENDER_MAY_LOAD = (
    "slurmgen.__main__",
    "slurmgen.cli.main",
    "slurmgen.script.agreement",
    "slurmgen.cluster",
    "slurmgen.slurm.answers",
    "slurmgen.script.pipeline",
    "slurmgen.cli.commands.render",
    "slurmgen.diagnostics",
    "slurmgen.slurm.directives",
    "slurmgen.errors",
    "slurmgen.files",
    "slurmgen.launchers",
    "slurmgen.script.plan",
    "slurmgen.jobfile.project",
    "slurmgen.slurm.quoting",
    "slurmgen.script.render",
    "slurmgen.cli.planning",
    "slurmgen.cli.quick",
    "slurmgen.cli.report",
    "slurmgen.cli.verbs",
    "slurmgen.resources",
    "slurmgen.jobfile.source",
    "slurmgen.jobfile",
    "slurmgen.slurm.grammars",
    "slurmgen.slurm.options",
    "slurmgen.script.stamp",
)
RENDER_NEVER_LOADS = (
    "asyncio",
    "rich",
    "ruamel",
    "slurmgen.ddp",
    "slurmgen.lint",
    "slurmgen.reading.programs",
    "slurmgen.sandbox",
    "slurmgen.reading.shell",
    "slurmgen.slurm.live",
    "subprocess",
    "torch",
    "tree_sitter",
    "typer",
)
# Without a job file or a profile; those cost what they cost.
LINT_NEVER_LOADS = (
    "asyncio",
    "jinja2",
    "pydantic",
    "slurmgen.script.pipeline",
    "slurmgen.ddp",
    "slurmgen.script.plan",
    "slurmgen.script.render",
    "slurmgen.sandbox",
    "slurmgen.slurm.live",
    "subprocess",
    "torch",
)


def test_the_package_itself_imports_nothing() -> None:
    """But what it offers to Python, when that is asked for."""
    found = [module for module, _ in imports_of(PACKAGE / "__init__.py")]
    assert found == ["sys", "slurmgen.api"]
    loaded = loaded_by("-c", "import slurmgen")
    assert [m for m in loaded if is_inside(m, "slurmgen")] == ["slurmgen"]


def loaded_by(*arguments: str) -> list[str]:
    """The modules that a Python process imports, in that order."""
    finished = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONSAFEPATH": ""},
    )
    names = []
    other = []
    for line in finished.stderr.splitlines():
        if line.startswith("import time:"):
            names.append(line.rpartition("|")[2].strip())
        else:
            other.append(line)
    assert finished.returncode == 0, "\n".join(other)
    return names


def test_render_loads_only_what_it_needs() -> None:
    # What the interpreter loads by itself (a .pth file of some other package) is not ours.
    at_startup = set(loaded_by("-c", "pass"))
    loaded = [m for m in loaded_by("-m", "slurmgen", "render", QUICKSTART) if m not in at_startup]
    assert [m for m in loaded if any(is_inside(m, name) for name in RENDER_NEVER_LOADS)] == []

    ours = [module for module in loaded if is_inside(module, "slurmgen")]
    unexpected = [
        module
        for module in ours
        if module not in ("slurmgen", "slurmgen.cli", "slurmgen.cli.commands", "slurmgen.script")
        and module not in ("slurmgen.script.templates", "slurmgen.slurm")
        and not any(is_inside(module, name) for name in RENDER_MAY_LOAD)
    ]
    assert unexpected == []
    assert "slurmgen.script.render" in ours


def test_lint_loads_only_what_it_needs(tmp_path: Path) -> None:
    script = tmp_path / "job.sbatch"
    script.write_text("#!/bin/bash\n#SBATCH --time=1:00:00\nsrun hostname\n")
    at_startup = set(loaded_by("-c", "pass"))
    # Typer, which reads the command line, has needs of its own. Where the version is given,
    # nothing has to ask this machine's sbatch for it.
    code = f"from slurmgen.cli.commands import lint; lint.run([{str(script)!r}], slurm='22.05')"
    loaded = loaded_by("-c", code)
    found = [m for m in loaded if any(is_inside(m, name) for name in LINT_NEVER_LOADS)]
    assert set(found) - at_startup == set()
    assert "slurmgen.lint.engine" in loaded
    assert "slurmgen.lint.documentation" not in loaded


def test_the_entrypoint_runs_where_nothing_else_is_installed() -> None:
    """-S: no site-packages, and so neither pydantic nor torch."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import slurmgen.ddp"
    loaded = loaded_by("-S", "-c", code)
    assert [m for m in loaded if is_inside(m, "slurmgen") and not is_inside(m, "slurmgen.ddp")] == [
        "slurmgen"
    ]
