"""The files that `slurmgen init` writes, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen import __version__, launchers
from slurmgen.importer.yaml_text import Entry, write

if TYPE_CHECKING:
    from slurmgen.cli.starter.found import Environment

SCHEMA = ".slurmgen/job.schema.json"
HOOKS = ".pre-commit-config.yaml"
WORKFLOW = ".github/workflows/slurmgen.yml"
_PACKAGE = f"slurmgen-torch=={__version__}"


def schema_line(path: str) -> str:
    """The comment by which an editor's YAML support finds the schema at `path`."""
    return f"# yaml-language-server: $schema={path}"


def job_file(
    name: str, *, schema: str, cluster: str, launcher: str, program: str, found: Environment | None
) -> str:
    """A job file for one GPU, with what to change beside each key."""
    given = "" if cluster == "generic" else f" -c {cluster}"
    entries = [
        Entry("nodes", "1"),
        Entry("gpus_per_node", "1", beside="# [type:]count, such as a100:4"),
        Entry("time", "1:00:00", beside="# or 90m, 4h, 2d12h"),
        Entry("output", "%x-%j.out", beside="# %x: the job's name, %j: its id"),
        Entry("launcher", launcher, beside=f"# {launchers.find(launcher).about}"),
    ]
    if found is not None:
        setup = Entry(found.key, found.value, beside=f"# seen: {found.origin}")
        entries.append(Entry("setup", [setup]))
    entries.append(Entry("command", program))
    top = (
        schema_line(schema),
        f"# slurmgen plan {name}{given}               which rank sits where",
        f"# slurmgen render --write {name}{given}     the script, for git",
        f"# slurmgen submit {name}{given}             hand it to Slurm",
        "#",
        "# Most sites want some of these too:",
        "# partition: gpu",
        "# account: my_project",
        "# cpus_per_task: 8",
        "# mem: 64G",
    )
    return write(entries, top=top)


def imported(text: str, *, script: str, schema: str) -> str:
    """An imported job file, with where it is from."""
    return f"{schema_line(schema)}\n# Imported from {script}.\n{text}"


def hooks() -> str:
    """`.pre-commit-config.yaml`."""
    return f"repos:\n{hook_entry()}"


def hook_entry() -> str:
    """The entry of pre-commit: rendered scripts are those of their job files, and without fault."""
    return f"""\
  - repo: local
    hooks:
      - id: slurmgen-render-check
        name: scripts are those of their job files
        entry: slurmgen render --check
        language: python
        additional_dependencies: [{_PACKAGE}]
        pass_filenames: false
        files: \\.(ya?ml|sbatch|j2)$
      - id: slurmgen-lint
        name: lint of batch scripts and job files
        entry: slurmgen lint
        language: python
        additional_dependencies: [{_PACKAGE}]
        files: \\.(sbatch|slurm)$
"""


def workflow(folder: str) -> str:
    """A workflow of GitHub Actions that does what the hooks do; `folder`: where jobs are."""
    return f"""\
name: slurmgen

on:
  push:
    branches: [main]
  pull_request:

permissions:
  contents: read

jobs:
  scripts:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install {_PACKAGE}
      - name: The scripts are those of their job files
        run: slurmgen render --check {folder}
      - name: Nothing is wrong with them
        run: slurmgen lint --format github {folder}
"""
