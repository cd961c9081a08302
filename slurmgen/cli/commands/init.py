"""slurmgen init: a job file, its script and what keeps them together, in a project."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from slurmgen import launchers
from slurmgen.cli import report
from slurmgen.cli.planning import plan_job, render_job
from slurmgen.cli.starter import found, texts
from slurmgen.cluster import generic
from slurmgen.cluster.load import load_profile
from slurmgen.errors import EXIT_FINDINGS, EXIT_OK, InvalidInput, UnavailableError, UsageError
from slurmgen.files import read_bytes, write_atomically
from slurmgen.importer import NotImportable, import_script
from slurmgen.jobfile.project import working_folder
from slurmgen.jobfile.source import read_text
from slurmgen.lint.inputs import NotABatchScript, decode
from slurmgen.script.templates import ejected

if TYPE_CHECKING:
    from collections.abc import Callable

    # A question, its default, and what may be answered (nothing: anything).
    Ask = Callable[[str, str, tuple[str, ...]], str]

_SCRIPT = ".sbatch"


class Answers(NamedTuple):
    """What the command line says; None is asked, or found, or taken as usual."""

    cluster: str | None = None
    launcher: str | None = None
    program: str | None = None
    script: str | None = None
    templates: bool = False
    hooks: bool = True
    ci: bool = True


def start(folder: str, *, yes: bool, **answers: Any) -> int:
    """`run` with the answers of the command line, by their names; yes: nobody is asked."""
    return run(folder, Answers(**answers), None if yes else _asker())


def _asker() -> Ask | None:
    """What asks a person; None where there is none."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        return None
    import typer

    def ask(question: str, usual: str, choices: tuple[str, ...]) -> str:
        shown = f"{question} ({', '.join(choices)})" if choices else question
        while True:
            try:
                answer = str(typer.prompt(shown, default=usual, err=True)).strip()
            except typer.Abort:
                raise KeyboardInterrupt from None
            if not choices or answer in choices:
                return answer
            report.note(f"slurmgen: {answer} is none of them")

    return ask


def run(folder: str, answers: Answers, ask: Ask | None) -> int:
    """Write what is not there yet, and show the plan of the job.

    ask: None where nobody can answer. Nothing is written before everything is known, and what
    was written goes again where it can't be finished. Returns 1 where the job needs more than
    could be known, which is said.
    """
    home = Path(folder)
    if not home.is_dir():
        raise UsageError(f"{folder} is no folder", fix=f"mkdir -p {folder}")
    home = Path(os.path.realpath(working_folder() / home))
    name = found.free_name(home)
    job = home / f"{name}.yaml"
    cluster = answers.cluster
    if job.exists():
        files = {}
    else:
        if cluster is None and ask is not None:
            cluster = ask("Cluster profile", generic.NAME, cluster_names(home))
        files = {job: _job_text(job, home, answers, cluster or generic.NAME, ask)}
    # Raised before anything is written.
    load_profile(cluster or generic.NAME, home)
    files |= _other_files(home, answers)
    written = _write_all({path: text for path, text in files.items() if not path.exists()})
    for path in files:
        if path not in written:
            report.note(f"slurmgen: {_shown(path)} exists, and is left as it is")
    if job not in files:
        report.note(f"slurmgen: {_shown(job)} exists, and is left as it is")
    return _finish(job, cluster)


def cluster_names(folder: Path) -> tuple[str, ...]:
    """The profiles by name: the project's and the built-in ones."""
    from slurmgen.jobfile.project import project_root
    from slurmgen.resources import configs_dir

    folders = (project_root(folder / "job.yaml") / "clusters", configs_dir() / "clusters")
    return tuple(sorted({path.stem for where in folders for path in where.glob("*.yaml")}))


def _job_text(job: Path, home: Path, answers: Answers, cluster: str, ask: Ask | None) -> str:
    schema = os.path.relpath(found.repository(home) / texts.SCHEMA, home)
    script = _script(home, answers, ask)
    if script is not None:
        return _imported(script, home, schema)
    launcher = answers.launcher
    if launcher is None:
        usual = launchers.DEFAULT
        launcher = ask("Launcher", usual, launchers.NAMES) if ask else usual
    if launcher not in launchers.NAMES:
        raise UsageError(
            f'there is no launcher "{launcher[:60]}"', fix=f"write {', '.join(launchers.NAMES)}"
        )
    program = answers.program
    if program is None:
        seen = found.program(home) or "train.py"
        program = ask("Program", f"python {seen}", ()) if ask else f"python {seen}"
    if program.endswith(".py") and " " not in program:
        program = f"python {program}"
    text = texts.job_file(
        job.name,
        schema=schema,
        cluster=cluster,
        launcher=launcher,
        program=program,
        found=found.environment(home),
    )
    _note_program(program, home)
    return text


def _note_program(program: str, home: Path) -> None:
    file = next((word for word in program.split() if word.endswith(".py")), None)
    if file is not None and "$" not in file and not (home / file).exists():
        report.note(f"slurmgen: there is no {file} yet; change command: once there is one")


def _script(home: Path, answers: Answers, ask: Ask | None) -> Path | None:
    """The batch script to import: the one named, or the only one that is found."""
    if answers.script is not None:
        return Path(answers.script)
    # Whoever says what to start does not want it imported.
    if answers.program is not None or answers.launcher is not None:
        return None
    scripts = found.batch_scripts(home)
    if len(scripts) == 1 and ask is not None:
        wanted = ask(f"Import {_shown(scripts[0])}", "yes", ("yes", "no"))
        return scripts[0] if wanted == "yes" else None
    if len(scripts) > 1:
        shown = ", ".join(_shown(path) for path in scripts[:5])
        report.note(f"slurmgen: there are {len(scripts)} batch scripts ({shown}); none is imported")
        report.note(f"  = fix: slurmgen init --from {_shown(scripts[0])}")
        return None
    return scripts[0] if scripts else None


def _imported(script: Path, home: Path, schema: str) -> str:
    shown = _shown(script)
    try:
        imported = import_script(decode(read_bytes(script)), name=script.name)
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror}") from error
    except NotABatchScript as problem:
        raise UsageError(f"{shown}: not a batch script: {problem}") from None
    except NotImportable as problem:
        raise UsageError(
            f"{shown}: cannot become a job file: {problem}",
            fix="name the program: slurmgen init --program train.py",
        ) from None
    for note in imported.notes:
        report.note(f"{shown}:{note.line}: {note.text}")
    return texts.imported(imported.text, script=os.path.relpath(script, home), schema=schema)


def _other_files(home: Path, answers: Answers) -> dict[Path, str]:
    """Everything but the job file and its script."""
    from slurmgen.cli.schemas import schema_text

    root = found.repository(home)
    files = {root / texts.SCHEMA: schema_text("job")}
    if answers.templates:
        stamp = ejected.stamp_now("job", "commands")
        templates = home / "templates"
        files[templates / f"job{ejected.SUFFIX}"] = ejected.copy(stamp)
        kept = ejected.builtin_text(stamp.name, stamp.block)
        files[templates / ejected.KEPT / stamp.kept_as] = kept
    if answers.hooks:
        hooks = root / texts.HOOKS
        files[hooks] = texts.hooks()
        if hooks.exists() and "slurmgen" not in read_text(hooks):
            report.note(f"slurmgen: put this into {_shown(hooks)}, under repos:")
            report.note(texts.hook_entry().rstrip("\n"))
    if answers.ci:
        files[root / texts.WORKFLOW] = texts.workflow(os.path.relpath(home, root))
    return files


def _write_all(files: dict[Path, str]) -> list[Path]:
    """Write all of the files, or none; returns them."""
    made: list[Path] = []
    written: list[Path] = []
    try:
        for path, text in files.items():
            missing = [f for f in path.parents if not f.exists()]
            for folder in reversed(missing):
                folder.mkdir()
                made.append(folder)
            # From here on it may be there.
            written.append(path)
            write_atomically(path, text)
    except BaseException as error:
        for path in written:
            with suppress(OSError):
                path.unlink()
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise UnavailableError(
                f"cannot write: {error}", fix="check the folder's permissions"
            ) from error
        raise
    for path in written:
        report.note(f"slurmgen: wrote {_shown(path)}")
    return written


def _finish(job: Path, cluster: str | None) -> int:
    """Render the job, and show its plan; say what it lacks where it can't be."""
    shown = _shown(job)
    given = [] if cluster in (None, generic.NAME) else ["-c", str(cluster)]
    try:
        planned = plan_job(shown, cluster=cluster)
        script = job.with_suffix(_SCRIPT)
        if script.exists():
            report.note(f"slurmgen: {_shown(script)} exists, and is left as it is")
        else:
            _write_all({script: render_job(planned)})
    except InvalidInput as error:
        report.error(error)
        again = " ".join(["slurmgen render --write", shown, *given])
        report.note(f"slurmgen: {shown} needs the above before it can be rendered")
        report.note(f"  = fix: change it, then {again}")
        return EXIT_FINDINGS
    if planned.plan.script is None:
        from slurmgen.cli.commands.plan import format_table

        report.show(format_table(planned.plan))
    report.note(f"slurmgen: hand it to Slurm with: {' '.join(['slurmgen submit', shown, *given])}")
    return EXIT_OK


def _shown(path: Path) -> str:
    return os.path.relpath(path)
