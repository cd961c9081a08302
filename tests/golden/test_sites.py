"""Every example job on every built-in profile: what it asks for there, or why it is refused.

A file for each profile has, for each job, the directives, the variables and modules that
the profile adds, and the srun line; all else is the same everywhere and in `expected/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from slurmgen.cluster import generic
from slurmgen.cluster.load import load_profile
from slurmgen.errors import InvalidInput, Refusals
from slurmgen.jobfile.load import load_job
from slurmgen.resources import configs_dir
from slurmgen.script.plan import resolve
from slurmgen.script.render import render

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
JOBS = sorted((configs_dir() / "jobs").glob("*.yaml"))
NAMES = sorted(path.stem for path in (configs_dir() / "clusters").glob("*.yaml"))
WHO: dict[str, dict[str, Any]] = yaml.safe_load(
    (HERE / "sites" / "who.yaml").read_text(encoding="utf-8")
)


def outcome(job: Path, name: str) -> str:
    """What the script of a job asks for, or every reason against it."""
    profile = load_profile(name, HERE / "sites")
    text = job.read_text(encoding="utf-8")
    overrides = [
        f"{key}={value}"
        for key, value in WHO.get(name, {}).items()
        if key != "gpus_per_node" or key in text
    ]
    try:
        loaded = load_job(text, job.name, overrides=overrides, defaults=profile.defaults)
        script = render(resolve(loaded.spec, profile, source=job.name))
    except Refusals as error:
        found = error.problems
        return "".join(f"refused: {r.what}\n  why: {r.why}\n  fix: {r.fix}\n" for r in found)
    except InvalidInput as error:
        return "".join(f"refused: {d.message}\n  fix: {d.fix}\n" for d in error.diagnostics)
    return _asked(script)


def _asked(script: str) -> str:
    lines = [line.removeprefix("#SBATCH ") for line in script.split("\n") if _depends(line)]
    start = script.index("\nsrun ") + 1
    words = script[start:].replace(" \\\n ", "").split("\n", 1)[0]
    return "\n".join([*lines, words.replace(_ALWAYS, "…").partition(" bash -c ")[0]]) + "\n"


_ALWAYS = "--kill-on-bad-exit=1 --wait=0 --export=ALL"
_SAME = ("#SBATCH --job-name", "#SBATCH --output", "export SLURMGEN_", "export MASTER_ADDR")
_OTHER = ("#SBATCH ", "module ", "export ", "MASTER_ADDR", "  export MASTER_PORT")


def _depends(line: str) -> bool:
    """Whether a line may be another one on another profile."""
    return line.startswith(_OTHER) and not line.startswith(_SAME)


@pytest.mark.parametrize("name", [name for name in NAMES if name != generic.NAME])
def test_the_example_jobs_on_a_profile(name: str, golden: Callable[[Path, str], None]) -> None:
    parts = [f"== {job.stem}\n{outcome(job, name)}" for job in JOBS]
    golden(HERE / "sites" / f"{name}.txt", "\n".join(parts))


def test_nobody_is_without_a_profile() -> None:
    assert set(WHO) <= set(NAMES)
