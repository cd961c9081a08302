"""`from slurmgen import Job, render, submit, lint`: what the command line does, from Python."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

import slurmgen
from slurmgen import Job, lint, render
from slurmgen.errors import InvalidInput, SlurmgenError, UnavailableError, UsageError
from slurmgen.jobfile.keys import KEYS
from slurmgen.script import stamp

if TYPE_CHECKING:
    from pathlib import Path

GOOD = "nodes: 2\ngpus_per_node: 4\ntime: 1h\ncommand: python train.py\n"


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "job.yaml").write_text(GOOD)
    return tmp_path / "job.yaml"


def test_keys_that_come_before_those_of_the_file(job_file: Path) -> None:
    job = Job.load(job_file, set={"nodes": 3, "env.A": "x y", "command": ["python", "b c.py"]})
    assert job.plan.nodes == 3
    assert job.plan.env == (("A", "x y"),)
    assert job.plan.words == ("python", "b c.py")


def test_a_job_of_keys_renders_as_its_file_would(job_file: Path) -> None:
    job = Job(job_name="job", nodes=2, gpus_per_node=4, time="1h", command="python train.py")
    # The file leaves its name to be that of the job.
    assert stamp.without(render(job)) == stamp.without(render(job_file))


def test_another_cluster(job_file: Path) -> None:
    (job_file.parent / "clusters").mkdir()
    profile = job_file.parent / "clusters/here.yaml"
    profile.write_text("defaults: {partition: fast}\n")
    job = Job.load(job_file, set={"nodes": 3})
    moved = job.on(profile)
    assert (moved.cluster, moved.spec.partition, moved.plan.nodes) == ("here", "fast", 3)
    assert "--partition=fast" in render(job, cluster=profile)
    assert render(job_file, cluster="here").count("--partition=fast") == 1
    assert Job(command="true", cluster=profile).spec.partition == "fast"
    assert job.cluster == "generic"


def test_errors_have_places(job_file: Path) -> None:
    job_file.write_text("nodes: 2\ngpus_per_nod: 4\ntime: 1.5h\ncommand: x\n")
    with pytest.raises(InvalidInput) as raised:
        Job.load(job_file)
    places = [(d.location.line, d.location.column) for d in raised.value.diagnostics]
    assert sorted(places) == [(2, 1), (3, 7)]
    with pytest.raises(InvalidInput) as raised:
        Job(nodes=2, gpus_per_nod=4, command="x")  # type: ignore[call-arg]
    assert raised.value.diagnostics[0].fix == 'write "gpus_per_node"'
    for wrong in (lambda: Job.load("nosuch.yaml"), lambda: Job.load(job_file, cluster="nosuch")):
        with pytest.raises(SlurmgenError):
            wrong()


def test_lint(job_file: Path) -> None:
    script = "#!/bin/bash\n#SBATCH --time=24\nsrun hostname\n"
    path = job_file.with_name("a.sbatch")
    path.write_text(script)
    for what in (script, path, str(path)):
        (found,) = lint(what)
        assert (found.rule, found.location.line) == ("time-in-minutes", 2)
    assert lint(job_file) == lint(Job.load(job_file)) == []
    job_file.write_text("nodes: x\n")
    assert {d.location.path for d in lint(job_file)} == {str(job_file)}
    with pytest.raises(UnavailableError):
        lint("nosuch.sbatch")
    with pytest.raises(UsageError):
        lint("just\ntext\n")


def test_a_notebook_shows_a_picture(job_file: Path) -> None:
    job = Job.load(job_file)
    picture = job._repr_svg_()
    assert picture is not None
    assert picture.startswith("<svg ")
    assert "rank 7" in picture
    own = Job(nodes=2, script="#!/bin/bash\nsrun hostname\n")
    assert own._repr_svg_() is None


def test_what_one_should_know_is_not_printed(
    job_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """An unverified profile, and a partition that is chosen: of a file's job, and one of keys."""
    job_file.write_text("gpus_per_node: 1\ntime: 1h\npartition: auto\ncommand: python train.py\n")
    loaded = Job.load(job_file, cluster="cannon")
    made = Job(gpus_per_node=1, time="1h", partition="auto", command="true", cluster="cannon")
    for job in (loaded, made):
        doubt, choice = job.notes
        assert doubt.startswith("the profile cannon is not verified")
        assert choice.startswith("partition: auto is gpu, ")
        render(job)
        lint(job)
        assert len(job.notes) == 2
    assert capfd.readouterr() == ("", "")
    assert Job.load(job_file, cluster="generic", set={"partition": None}).notes == ()


def test_names_of_functions_stay_functions() -> None:
    """Though a module of the same name is imported by then."""
    assert import_module("slurmgen.lint").__name__ == "slurmgen.lint"
    for name in ("render", "lint", "submit"):
        assert getattr(slurmgen, name).__module__ == "slurmgen.api"
    assert set(slurmgen.__all__) <= set(dir(slurmgen))
    with pytest.raises(AttributeError):
        slurmgen.nosuch  # type: ignore[attr-defined]  # noqa: B018


ALL_KEYS = set(KEYS)
LONE = "\ud800"
LARGE = 10**5000


@pytest.mark.parametrize(
    "keys",
    [
        *({key: value} for key in sorted(ALL_KEYS)
          for value in (LONE, [LONE], ["a", LONE], {LONE: "a"}, {"A": LONE}, {"A": {LONE: LONE}},
                        {1: 2}, {None: 1}, {"A": {1: 2}}, LARGE, [LARGE], float("nan"), object())),
        {LONE: 1},
        {"setup": {"commands": LONE}},
        {"setup": {"container": {"image": LONE}}},
    ],
    ids=lambda keys: ascii(next(iter(keys))) + " " + type(next(iter(keys.values()))).__name__,
)  # fmt: skip
def test_what_no_file_could_hold_is_refused_in_words(keys: dict[str, object]) -> None:
    """No exception of Python's own, whatever a key is given."""
    with suppress(InvalidInput):
        render(Job(**{"command": ["true"], **keys}))  # type: ignore[arg-type]
