"""What users install: the wheel and the sdist, built here and used where no checkout is."""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from slurmgen import __version__
from tests.packaging.building import QUICKSTART, ROOT, install, run

# One process builds, and the others don't build the same again.
pytestmark = pytest.mark.xdist_group("packaging")


def files_below(name: str) -> set[str]:
    """The files of a folder that belong to the project."""
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / name).rglob("*")
        if path.is_file() and path.suffix != ".pyc" and not path.name.startswith(".")
    }
    assert found, f"{name}/ is empty"
    return found


def names_in_wheel(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def names_in_sdist(path: Path) -> set[str]:
    with tarfile.open(path) as archive:
        return {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}


def test_the_wheel_holds_the_package_its_templates_and_configs_and_nothing_else(
    wheel: Path,
) -> None:
    resources = files_below("templates") | files_below("configs")
    expected = files_below("slurmgen") | {f"slurmgen/{name}" for name in resources}
    assert {name for name in names_in_wheel(wheel) if ".data/" not in name} == expected
    assert "slurmgen/py.typed" in expected


def test_the_wheel_has_manual_and_completions_where_they_are_looked_for(wheel: Path) -> None:
    prefix = f"slurmgen_torch-{__version__}.data/data/share/"
    assert {name.removeprefix(prefix) for name in names_in_wheel(wheel) if ".data/" in name} == {
        *(f"man/man1/{name.removeprefix('man/')}" for name in files_below("man")),
        "bash-completion/completions/slurmgen",
        "zsh/site-functions/_slurmgen",
        "fish/vendor_completions.d/slurmgen.fish",
    }


def test_the_wheel_of_the_sdist_is_the_same(wheel: Path, wheel_of_sdist: Path) -> None:
    assert names_in_wheel(wheel_of_sdist) == names_in_wheel(wheel)


@pytest.mark.parametrize("folder", ["slurmgen", "templates", "configs", "man", "tests", "scripts"])
def test_the_sdist_holds_a_whole_checkout(sdist: Path, folder: str) -> None:
    assert files_below(folder) <= names_in_sdist(sdist)


def test_the_sdist_holds_what_a_build_and_a_licence_need(sdist: Path) -> None:
    needed = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "Makefile",
        "constraints.txt",
    }
    assert needed <= names_in_sdist(sdist)


def test_the_metadata_name_the_command_and_no_torch(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        by_name = {name.rpartition("/")[2]: name for name in archive.namelist()}
        metadata = archive.read(by_name["METADATA"]).decode()
        entry_points = archive.read(by_name["entry_points.txt"]).decode()
    assert "slurmgen = slurmgen.cli.main:main" in entry_points
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:")]
    assert [line for line in required if "torch" in line and "extra ==" not in line] == []


@pytest.mark.parametrize("kind", ["wheel", "wheel_of_sdist"])
def test_an_installation_renders_with_no_checkout_in_reach(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    programs = install(request.getfixturevalue(kind), tmp_path / "venv")
    project = tmp_path / "project"
    project.mkdir()
    (project / "job.yaml").write_text(QUICKSTART.read_text())

    where = "import slurmgen.resources as r, sys; print(r.__file__, r.configs_dir(), *sys.path)"
    paths = run(programs / "python", "-c", where, cwd=project).split()
    assert [p for p in paths if p == str(ROOT) or p.startswith(str(ROOT / "slurmgen"))] == []
    assert Path(paths[0]).is_relative_to(tmp_path / "venv")
    assert Path(paths[1]).is_relative_to(tmp_path / "venv")

    # Its bytes are those of the checkout, which says the same to everyone.
    here = run(sys.executable, "-m", "slurmgen", "render", "job.yaml", cwd=project)
    assert here.startswith("#!/bin/bash")
    assert run(programs / "slurmgen", "render", "job.yaml", cwd=project) == here
    assert run(programs / "python", "-m", "slurmgen", "render", "job.yaml", cwd=project) == here

    # Modules that are imported by name, and Bash's grammar.
    rules = run(sys.executable, "-m", "slurmgen", "lint", "--explain", "all", cwd=project)
    assert run(programs / "slurmgen", "lint", "--explain", "all", cwd=project) == rules
    (project / "job.sbatch").write_text(here)
    (project / "logs").mkdir()
    run(programs / "slurmgen", "lint", "job.sbatch", cwd=project)


def test_the_oldest_versions_are_those_that_are_allowed() -> None:
    """constraints-oldest.txt, by which `make test-oldest` installs."""
    pinned = re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints-oldest.txt").read_text(), re.M)
    text = (ROOT / "pyproject.toml").read_text()
    required = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert required
    allowed = dict(re.findall(r'"([\w-]+)>=([\d.]+),', required[1]))
    assert {name: version.removesuffix(".0") for name, version in pinned} == {
        name: version.removesuffix(".0") for name, version in allowed.items()
    }
