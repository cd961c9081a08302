"""slurmgen from Python: the objects of the command line.

    from slurmgen import Job, lint, render, submit

    job = Job.load("job.yaml", cluster="lumi")
    job.plan.world_size
    print(render(job))
    job_id = submit(job)

Whatever is wrong is raised as a class of `slurmgen.errors`: `InvalidInput.diagnostics` has
every error with its place in the file. What the command line says beside its result is in
`Job.notes`; only `submit`, which may have to wait for Slurm, writes to stderr what it does and
what lint warns of. In a notebook a Job is a picture of which rank sits on which GPU.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slurmgen.errors import InvalidInput, UsageError
from slurmgen.files import read_bytes
from slurmgen.script import pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    # A type checker knows it, whatever is installed.
    from typing_extensions import Unpack

    from slurmgen.diagnostics import Diagnostic
    from slurmgen.jobfile.given import Keys
    from slurmgen.jobfile.job import JobSpec
    from slurmgen.script.plan import JobPlan

PathLike = str | os.PathLike[str]


class Job:
    """A valid job on a cluster, everything about it decided.

    `Job(nodes=2, gpus_per_node="a100:4", command=["python", "train.py"])` takes the keys of a
    job file; `Job.load` reads one. cluster: a profile's name or file; None assumes nothing.
    Raises InvalidInput with every error, UsageError, UnavailableError.
    """

    def __init__(self, *, cluster: PathLike | None = None, **keys: Unpack[Keys]) -> None:
        self._keys: Keys | None = keys
        self._path = ""
        self._set: dict[str, Any] = {}
        self._told: list[str] = []
        self._planned = pipeline.plan_keys(keys, cluster=_text(cluster), tell=self._told.append)

    @classmethod
    def load(
        cls,
        path: PathLike,
        *,
        cluster: PathLike | None = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - as the option is called
    ) -> Job:
        """The job of a job file; set: keys that come before the file's, as `--set` takes them."""
        job = cls.__new__(cls)
        job._keys, job._path, job._set = None, os.fspath(path), dict(set or {})
        overrides = [f"{key}={_yaml(value)}" for key, value in job._set.items()]
        job._told = []
        job._planned = pipeline.plan_job(
            job._path, cluster=_text(cluster), overrides=overrides, tell=job._told.append
        )
        return job

    def on(self, cluster: PathLike) -> Job:
        """The same job on another cluster."""
        if self._keys is not None:
            return Job(cluster=cluster, **self._keys)
        return Job.load(self._path, cluster=cluster, set=self._set)

    @property
    def spec(self) -> JobSpec:
        """The keys; `str()` of each value is its canonical spelling."""
        return self._planned.spec

    @property
    def plan(self) -> JobPlan:
        """What was decided: ranks, nodes, directives."""
        return self._planned.plan

    @property
    def notes(self) -> tuple[str, ...]:
        """What one should know though nothing is wrong: what was chosen, what the site advises."""
        return tuple(dict.fromkeys(self._told))

    @property
    def cluster(self) -> str:
        """The name of the cluster's profile."""
        return self._planned.profile.name

    def render(self) -> str:
        """The sbatch script; raises InvalidInput where a template is wrong."""
        return pipeline.render_job(self._planned, tell=self._told.append)

    def lint(self) -> list[Diagnostic]:
        """What is wrong with the script, said of the job file."""
        from slurmgen.lint.rendered import as_linted

        return _findings(as_linted(self._planned, self.render()))

    def submit(self) -> str:
        """Hand the job to Slurm; returns its id. Raises as `submit` does."""
        from slurmgen.cli.commands import submit as verb

        return verb.submit_planned(self._planned, self._path)

    def __repr__(self) -> str:
        return f"<Job {self.plan.job_name} on {self.cluster}>"

    def _repr_svg_(self) -> str | None:
        """The plan as a notebook shows it; None where nobody knows what ranks are started."""
        if self.plan.script is not None:
            return None
        from slurmgen.script.picture import draw

        return draw(self.plan)


def render(job: Job | PathLike, *, cluster: PathLike | None = None) -> str:
    """The sbatch script of a job or a job file; raises InvalidInput with every error."""
    return _job(job, cluster).render()


def submit(job: Job | PathLike, *, cluster: PathLike | None = None) -> str:
    """Render, lint and hand to sbatch; returns the job's id.

    Raises FaultyJob where the job would fail, hang or waste its GPUs; NotSubmitted where Slurm
    has no job (JobRefused: since it doesn't want it); PerhapsSubmitted where that can't be
    found out, and submitting again might start it twice; another UnavailableError where there is
    no Slurm. Where a program was killed between Slurm's taking this job and its id, the id is that
    job's, and a line on stderr says so.
    """
    return _job(job, cluster).submit()


def lint(what: Job | PathLike, *, cluster: PathLike | None = None) -> list[Diagnostic]:
    """What is wrong with a batch script, a job file or a job, in the order of their places.

    what: a path, or a script's text, which is more than one line. The errors of a job file
    are its findings. Raises UsageError for what is no batch script, UnavailableError.
    """
    from slurmgen.lint import inputs
    from slurmgen.lint import job as lint_job

    if isinstance(what, Job):
        return (what if cluster is None else what.on(cluster)).lint()
    given = os.fspath(what)
    is_text = "\n" in given
    if not is_text and inputs.is_job_file(given):
        try:
            return Job.load(given, cluster=cluster).lint()
        except InvalidInput as error:
            return list(error.diagnostics)
    shown = "<text>" if is_text else given
    try:
        text = inputs.decode(given.encode(errors="surrogateescape") if is_text else _read(given))
    except inputs.NotABatchScript as problem:
        raise UsageError(f"{shown}: not a batch script: {problem}") from None
    folder = None if is_text else Path(given).parent
    profile = None
    if cluster is not None:
        profile = pipeline.profile_for(_text(cluster), folder or Path())
    slurm = profile.slurm if profile else None
    return _findings(lint_job.load(shown, text, slurm=slurm, profile=profile, folder=folder))


def _job(job: Job | PathLike, cluster: PathLike | None) -> Job:
    if not isinstance(job, Job):
        return Job.load(job, cluster=cluster)
    return job if cluster is None else job.on(cluster)


def _findings(job: Any) -> list[Diagnostic]:
    from slurmgen.lint import engine, registry

    outcome = engine.check(job, registry.choose())
    for failure in outcome.failures:
        raise failure.error
    return list(outcome.diagnostics)


def _read(path: str) -> bytes:
    from slurmgen.errors import UnavailableError

    try:
        return read_bytes(path)
    except OSError as error:
        raise UnavailableError(
            f"cannot read {path}: {error.strerror}", fix="check the path and its permissions"
        ) from error


def _text(cluster: PathLike | None) -> str | None:
    return None if cluster is None else os.fspath(cluster)


def _yaml(value: Any) -> str:
    """A value as `--set` reads it: JSON is YAML."""
    import json

    return value if isinstance(value, str) else json.dumps(value)
