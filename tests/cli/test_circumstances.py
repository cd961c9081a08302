"""Verbs where the system says no: never a traceback, never exit 70, always words with a fix.

Each case is a process of its own, since it is about the process: its folder, limits and streams.
As root, the right to pass over permissions is given up, as an ordinary user never has it.
By hand, every case with every verb: `SLURMGEN_ALL_CASES=1 pytest tests/cli/test_circumstances.py`.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from slurmgen import files
from slurmgen.cli import main
from slurmgen.files import MOST_BYTES

ROOT = Path(__file__).resolve().parents[2]
GOOD = "nodes: 2\ngpus_per_node: 4\ntime: 1h\ncommand: python train.py\n"
SCRIPT = "#!/bin/bash\n#SBATCH --nodes=1\nsrun python train.py\n"
PATIENCE = 120
FOREIGN = ("Traceback", "Exception ignored", "bug of slurmgen", "Errno")
ALL = bool(os.environ.get("SLURMGEN_ALL_CASES"))
# No Slurm that answers is needed: nothing here gets that far, or it says so in words.
VERBS = {
    "render": "render {job}",
    "write": "render {job} -o out.sbatch",
    "submit": "submit {job}",
    "plan": "plan {job}",
    "svg": "plan {job} --svg x.svg",
    "rehearse": "rehearse {job}",
    "check": "check {job}",
    "lint": "lint {script}",
    "folder": "lint .",
    "mend": "lint --fix {script}",
    "import": "import {script}",
    "init": "init",
    "schema": "schema",
    "completion": "completion bash --install",
    "sandbox": "sandbox status",
    "clusters": "cluster list",
    "cluster": "cluster show lumi",
    "templates": "template list",
    "template": "template show job",
    "eject": "template eject job",
    "tab": "__complete render ''",
    "help": "--help",
    "stdin": "render -",
}


class Case(NamedTuple):
    """What Bash does before the verb, the variables (None: unset), and redirections behind it.

    verbs: those that meet something else than the others; says: words of what they then say.
    """

    verbs: str
    before: str = ""
    variables: tuple[tuple[str, str | None], ...] = ()
    behind: str = ""
    says: str = ""
    job: str = "job.yaml"


HERE = "cannot find the working folder"
CASES = {
    "the working folder is gone": Case(
        "render submit plan check init clusters cluster template stdin",
        "cd inner; rm -r ../inner;",
        says=HERE,
        job="../job.yaml",
    ),
    "the working folder can't be read": Case(
        "init eject", "cd inner; chmod 0 .;", says="cannot use", job="../job.yaml"
    ),
    "the working folder can't be written to": Case(
        "write svg eject", "cd inner; chmod 555 .;", says="Permission denied", job="../job.yaml"
    ),
    "HOME is not set": Case("render rehearse clusters", variables=(("HOME", None),)),
    "HOME can't be searched": Case("render plan init clusters", "chmod 0 home;"),
    "HOME can't be searched, and is needed": Case(
        "completion sandbox", "chmod 0 home;", says="Permission denied"
    ),
    "HOME is a file": Case("render clusters", variables=(("HOME", "/dev/null/x"),)),
    "TMPDIR is not there": Case("render submit", variables=(("TMPDIR", "/no/such/folder"),)),
    "no file may grow": Case("submit", "ulimit -f 0;", says="TMPDIR"),
    "no file may grow, nor a rehearsal's": Case("rehearse", "ulimit -f 0;", says="TMPDIR"),
    "no file may grow, nor a script": Case("write", "ulimit -f 0;", says="File too large"),
    "hardly any file may be open": Case("render lint", "ulimit -n 10;"),
    "stdout is closed": Case("render schema", behind=">&-", says="cannot write to stdout"),
    "stdout is full": Case("render schema", behind="> /dev/full", says="cannot write to stdout"),
    "stderr is closed": Case("submit lint", behind="2>&-"),
    "stderr is full": Case("submit init", behind="2> /dev/full"),
    "stdin is closed": Case("render stdin", behind="<&-"),
    "an ASCII locale": Case("render lint", variables=(("LC_ALL", "C"),), job="jöb.yaml"),
}
WHICH = [
    pytest.param(case, verb, id=f"{case}: {verb}")
    for case in CASES
    for verb in (VERBS if ALL else CASES[case].verbs.split())
]


@pytest.mark.parametrize(("name", "verb"), WHICH)
def test_what_the_system_refuses_is_said_in_words(name: str, verb: str, tmp_path: Path) -> None:
    case = CASES[name]
    make(tmp_path, case.job)
    try:
        done = call(
            case, VERBS[verb].format(job=case.job, script=script_beside(case.job)), tmp_path
        )
    finally:
        for folder in (tmp_path / "home", tmp_path / "inner"):
            if folder.exists():
                folder.chmod(0o755)
    said = done.stderr.decode()
    assert done.returncode in (0, 1, 2, 3), said
    assert not [word for word in FOREIGN if word in said], said
    assert not list(tmp_path.rglob(".slurmgen-*.tmp"))
    if case.says and verb in case.verbs.split():
        assert done.returncode == 3 or verb == "eject", said
        assert case.says in said
        assert "= fix: " in said


def script_beside(job: str) -> str:
    return job.replace(Path(job).name, "job.sbatch")


def make(folder: Path, job: str) -> None:
    for place in (folder, folder / "inner"):
        place.mkdir(exist_ok=True)
        for name in ("job.yaml", Path(job).name):
            (place / name).write_text(GOOD)
        (place / "job.sbatch").write_text(SCRIPT)
    (folder / "home").mkdir()


def call(case: Case, arguments: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment: dict[str, str | None] = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder / "home"),
        # What asks Slurm is told at once that there is none.
        "SLURM_CONF": "/dev/null",
        **dict(case.variables),
    }
    command = f"{case.before} exec {sys.executable} -m slurmgen {arguments} {case.behind}"
    return subprocess.run(
        [*as_a_user(), "bash", "-c", command],
        cwd=folder,
        env={name: value for name, value in environment.items() if value is not None},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
    )


def as_a_user() -> list[str]:
    """What gives up root's right to read and write whatever the permissions say."""
    if os.geteuid():
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv, or an ordinary user")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@pytest.mark.parametrize("verb", ["render", "lint", "import", "plan -c", "rehearse"])
@pytest.mark.parametrize(
    "file", ["/dev/zero", "folder.yaml", "loop.yaml", "/dev/null", "gone/job.yaml", "big.yaml"]
)
def test_what_is_no_job_file_is_said_at_once(
    verb: str,
    file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make(tmp_path, "job.yaml")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    with (tmp_path / "big.yaml").open("wb") as big:
        big.truncate(MOST_BYTES + 1)
    rest = ["job.yaml"] if verb == "plan -c" else []
    monkeypatch.setattr(sys, "argv", ["slurmgen", *verb.split(), file, *rest])
    with pytest.raises(SystemExit) as caught:
        main.main()
    gc.enable()
    said = capsys.readouterr().err
    # A folder without a script is no fault of lint's, and an empty profile assumes nothing.
    allowed = (0, 2, 3) if file in ("/dev/null", "folder.yaml") else (2, 3)
    assert caught.value.code in allowed, said
    assert said or file == "/dev/null"
    assert not [word for word in FOREIGN if word in said], said


def test_a_pipe_is_waited_for_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "job.yaml"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(GOOD,))
    writer.start()
    assert files.read_bytes(pipe) == GOOD.encode()
    writer.join()
    monkeypatch.setattr(files, "_PIPE_SECONDS", 0)
    with pytest.raises(OSError, match="nothing came through the pipe"):
        files.read_bytes(pipe)
