"""The scripts that slurmgen has rendered, as lint sees them: with the job file behind each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slurmgen.cluster.load import load_profile
from slurmgen.errors import Refusals, SlurmgenError
from slurmgen.jobfile.load import load_job
from slurmgen.jobfile.source import read_text
from slurmgen.lint.job import Job
from slurmgen.lint.origin import Origin
from slurmgen.script import stamp_reader
from slurmgen.script.pipeline import job_file_of, job_folder
from slurmgen.script.plan import resolve

if TYPE_CHECKING:
    from slurmgen.script.pipeline import Planned


def as_linted(planned: Planned, text: str, *, slurm: str | None = None) -> Job:
    """The Job of a rendered script, whose findings are said of the job file.

    slurm: a release line such as 22.05, where it is another than the profile's.
    """
    origin = Origin(planned.plan, planned.source, text, planned.text)
    path = origin.source.path
    job = Job(path, text, slurm, planned.profile)
    job.origin = origin
    # sbatch runs the script where it is submitted, which is mostly one of these.
    job.roots = tuple(dict.fromkeys((Path(path).parent, planned.root, Path())))
    return job


def origin_of(script: Path, text: str) -> Origin | None:
    """What tells of each line of a script from which line of the job file beside it comes.

    None where either has changed since, or other keys came from the command line.
    """
    path, said = job_file_of(script, text), stamp_reader.read(text)
    if path is None or said is None or said.overrides:
        return None
    root = job_folder(str(path))
    try:
        profile = load_profile(said.cluster, root)
        yaml = read_text(path)
        loaded = load_job(yaml, str(path), defaults=profile.defaults)
        plan = resolve(loaded.spec, profile, source=said.source)
    except (SlurmgenError, Refusals):
        return None
    return Origin(plan, loaded.source, text, yaml)
