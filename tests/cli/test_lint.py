"""slurmgen lint as a person types it: what it reads, prints, writes, and exits with."""

from __future__ import annotations

import gc
import io
import json
import os
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from slurmgen.cli import main
from slurmgen.diagnostics import ERROR, Edit, Place
from slurmgen.lint import registry
from slurmgen.lint.finding import Finding
from slurmgen.lint.registry import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from slurmgen.lint.job import Job

    Lint = Callable[..., tuple[int, str, str]]

GOOD = "#!/bin/bash\n#SBATCH --time=1:00:00\nhostname\n"
WRONG = GOOD + "zeta 'é'\n"
FOUND = "error: zeta is here [no-zeta SG199]"


def _no_zeta(job: Job) -> Iterator[Finding]:
    """An error wherever the word stands alone on the way into a line; --fix makes it eta."""
    for number, line in enumerate(job.text.split("\n"), start=1):
        if line.startswith("zeta"):
            at = sum(len(other) + 1 for other in job.text.split("\n")[: number - 1])
            yield Finding(
                Place(number, 1, 4),
                "zeta is here",
                "it is",
                "drop it",
                edits=(Edit(at, at + 1, ""),),
            )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in; `main` stops the garbage collector for good."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.sbatch").write_text(GOOD)
    (tmp_path / "wrong.sbatch").write_text(WRONG)
    yield tmp_path
    gc.enable()


@pytest.fixture
def lint(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Lint]:
    """Runs the command in this process, with one rule more: status, stdout, stderr."""
    rules = (*registry.choose(["SG020"]), Rule("no-zeta", "SG199", ERROR, _no_zeta))
    monkeypatch.setattr(registry, "rules", lambda: rules)
    registry._by_name.cache_clear()

    def call(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["slurmgen", "lint", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as caught:
            main.main()
        shown = capsys.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, shown.out, shown.err

    yield call
    registry._by_name.cache_clear()


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def paths(output: str) -> list[str]:
    return [one["path"] for one in json.loads(output)]


def test_a_script_without_a_fault(lint: Lint) -> None:
    assert lint("good.sbatch") == (0, "", "slurmgen: no findings in 1 file\n")


def test_a_finding_has_place_reason_and_fix(lint: Lint) -> None:
    status, out, err = lint("wrong.sbatch")
    assert status == 1
    assert out == (
        f"wrong.sbatch:4:1: {FOUND}\n"
        "  |\n"
        "4 | zeta 'é'\n"
        "  | ^~~~\n"
        "  = why: it is\n"
        "  = fix: drop it\n"
    )
    assert err == "slurmgen: 1 error in 1 file; 1 fixable with --fix\n"


def test_findings_of_several_files_come_sorted(lint: Lint, folder: Path) -> None:
    (folder / "a.sbatch").write_text(GOOD + "zeta  # slurmgen: ignore[SG198] so\nzeta\n")
    status, out, err = lint("wrong.sbatch", "good.sbatch", "a.sbatch", "wrong.sbatch")
    heads = [line for line in out.splitlines() if ".sbatch:" in line]
    assert [head.partition(": ")[0] for head in heads] == [
        "a.sbatch:4:1",
        "a.sbatch:4:26",
        "a.sbatch:5:1",
        "wrong.sbatch:4:1",
    ]
    assert status == 1
    assert err == "slurmgen: 3 errors, 1 warning in 3 files; 3 fixable with --fix\n"


def test_json_has_the_agreed_keys(lint: Lint) -> None:
    status, out, err = lint("--format", "json", "wrong.sbatch")
    assert (status, err) == (1, "")
    assert json.loads(out) == [
        {
            "path": "wrong.sbatch",
            "line": 4,
            "column": 1,
            "rule": "no-zeta",
            "code": "SG199",
            "severity": "error",
            "message": "zeta is here",
            "why": "it is",
            "fix": "drop it",
        }
    ]
    assert lint("--format=json", "good.sbatch")[:2] == (0, "[]\n")


def test_the_other_formats(lint: Lint) -> None:
    status, out, _ = lint("--format", "github", "wrong.sbatch")
    assert status == 1
    assert out.startswith(
        "::error file=wrong.sbatch,line=4,col=1,endColumn=5,title=no-zeta SG199::"
    )
    assert lint("--format", "github", "good.sbatch") == (0, "", "")
    status, out, _ = lint("--format", "sarif", "wrong.sbatch")
    (run,) = json.loads(out)["runs"]
    assert (status, len(run["results"])) == (1, 1)
    assert run["results"][0]["fixes"]


def test_rules_are_selected_and_ignored(lint: Lint, folder: Path) -> None:
    (folder / "a.sbatch").write_text(GOOD + "zeta\ntrue # slurmgen: ignore[nosuch] so\n")
    for arguments, status, count in [
        ((), 1, 2),
        (("--select", "SG1"), 1, 1),
        (("--select", "no-zeta,SG020"), 1, 2),
        (("--ignore", "no-zeta"), 1, 1),
        (("--ignore", "SG199", "--ignore", "SG0"), 0, 0),
        (("--severity", "error"), 1, 1),
        (("--severity", "warning"), 1, 2),
        (("--severity", "error", "--ignore", "no-zeta"), 0, 0),
    ]:
        done = lint("--format=json", *arguments, "a.sbatch")
        assert (done[0], len(json.loads(done[1]))) == (status, count), arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to lint"),
        (["--select", "no-zetta", "good.sbatch"], "write no-zeta (SG199)"),
        (["--ignore", "SG7", "good.sbatch"], 'there is no rule "SG7"'),
        (["--format", "xml", "good.sbatch"], "text, json, github, sarif"),
        (["--severity", "info", "good.sbatch"], "error, warning"),
        (["--slurm", "slurm", "good.sbatch"], "no version of Slurm"),
        (["--slurm", "22.5", "good.sbatch"], "no version of Slurm"),
        (["--cluster", "nowhere", "good.sbatch"], 'no cluster profile "nowhere"'),
        (["--diff", "--format", "json", "good.sbatch"], "--diff"),
        (["--explain", "no-zetta"], "write no-zeta (SG199)"),
        (["--no-such-option", "good.sbatch"], "No such option"),
    ],
)
def test_wrong_usage(lint: Lint, folder: Path, arguments: list[str], message: str) -> None:
    before = files(folder)
    status, out, err = lint(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert files(folder) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a batch script: it is empty"),
        (b"\n  \n", "not a batch script: it is empty"),
        (b"hello\n", "not a batch script: it has neither"),
        (b"#!/bin/bash\n\0\n", "not a batch script: it holds a NUL byte"),
        (b"\x7fELF\x02\0", "not a batch script: it holds a NUL byte"),
        (b"#!/bin/bash\n\x01\xff\x02", "not a batch script: it is binary, and no text"),
    ],
)
def test_what_is_no_batch_script(lint: Lint, folder: Path, content: bytes, message: str) -> None:
    (folder / "other").write_bytes(content)
    status, out, err = lint("other", "wrong.sbatch")
    assert status == 2
    assert FOUND in out
    assert err.splitlines()[0].startswith(f"slurmgen: other: {message}")
    assert err.splitlines()[1:] == ["slurmgen: 1 error in 1 file; 1 fixable with --fix"]
    assert lint("--format=json", "other", "wrong.sbatch")[0] == 2


@pytest.mark.parametrize(
    "content",
    [
        b"#!/bin/bash\nsbatch job.sbatch\n",
        b"#SBATCH --nodes=1\nhostname\n",
        b"# SBATCH --nodes=1\nhostname\n",
        b"#!/bin/bash\n# caf\xe9, in Latin-1\nhostname\n",
        b"\xef\xbb\xbf#!/bin/bash\nhostname\n",
        b"#!/usr/bin/env python3\n#SBATCH --nodes=1\nprint()\n",
    ],
)
def test_what_is_one(lint: Lint, folder: Path, content: bytes) -> None:
    (folder / "other").write_bytes(content)
    assert lint("other")[0] == 0


def test_a_file_that_cannot_be_read(lint: Lint, folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    status, out, err = lint("missing", "loop", "wrong.sbatch", "x" * 300, "a\nb")
    assert status == 2
    assert FOUND in out
    assert "slurmgen: missing: cannot read it: No such file or directory\n" in err
    assert "slurmgen: loop: cannot read it: Too many levels of symbolic links\n" in err
    assert len(err.splitlines()) == 6


def test_a_folder_is_searched(lint: Lint, folder: Path) -> None:
    directive = "#!/bin/sh\n#SBATCH --nodes=1\nzeta\n"
    for name in (
        "p/b.sbatch", "p/b/c.slurm", "p/a.sh", "p/run", "p/t.py", "p/x.job",
        "p/.git/a.sh", "p/.venv/a.sh", "p/node_modules/a.sh", "p/.hidden.sh", "p/env/a.sh",
        "p/notes.md", "p/a.sbatch.j2",
    ):  # fmt: skip
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(directive)
    (folder / "p/env/pyvenv.cfg").write_text("")
    (folder / "p/helper.sh").write_text("#!/bin/sh\nzeta\n")
    (folder / "p/plain.sbatch").write_text("#!/bin/sh\nzeta\n")
    (folder / "p/no.sbatch").write_text("zeta\n")
    (folder / "p/data.bin").write_bytes(b"\0")
    (folder / "p/compose.yaml").write_text("services:\n  a:\n    command: x\n")
    os.mkfifo(folder / "p/pipe.sbatch")
    (folder / "p/again").symlink_to(".", target_is_directory=True)
    status, out, err = lint("--format=json", "p", "p/a.sh")
    assert (status, err) == (1, "")
    names = ["a.sh", "b.sbatch", "b/c.slurm", "plain.sbatch", "run", "t.py", "x.job"]
    assert paths(out) == [f"p/{name}" for name in names]
    assert lint("--format=json", ".")[1].count('"wrong.sbatch"') == 1


def test_an_empty_folder_is_no_fault(lint: Lint, folder: Path) -> None:
    (folder / "empty").mkdir()
    assert lint("empty") == (
        0,
        "",
        "slurmgen: there is no batch script and no job file in empty\n",
    )


def test_a_script_on_standard_input(lint: Lint) -> None:
    assert lint("-", stdin=GOOD.encode())[0] == 0
    status, out, _ = lint("-", stdin=WRONG.encode())
    assert status == 1
    assert out.startswith(f"<stdin>:4:1: {FOUND}\n")
    status, out, err = lint("-", stdin=b"")
    assert (status, out) == (2, "")
    assert "slurmgen: <stdin>: not a batch script: it is empty" in err


def test_fix_writes_what_is_mended_and_nothing_else(lint: Lint, folder: Path) -> None:
    path = folder / "real.sbatch"
    raw = b"\xef\xbb\xbf#!/bin/bash\r\n#SBATCH --nodes=1\r\nzeta '\xc3\xa9'\r\ntrue \t\nzeta"
    path.write_bytes(raw)
    path.chmod(0o750)
    (folder / "link.sbatch").symlink_to("real.sbatch")
    good = (folder / "good.sbatch").stat()
    status, out, err = lint("--fix", "link.sbatch", "good.sbatch")
    assert (status, out) == (0, "")
    assert err == "slurmgen: 1 file changed; no findings in 2 files\n"
    assert path.read_bytes() == raw.replace(b"zeta", b"eta")
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert (folder / "link.sbatch").is_symlink()
    assert (folder / "good.sbatch").stat() == good
    before = path.stat()
    assert lint("--fix", "link.sbatch")[0] == 0
    assert path.stat() == before


def test_fix_keeps_bytes_that_are_no_utf_8(lint: Lint, folder: Path) -> None:
    path = folder / "latin.sbatch"
    path.write_bytes(b"#!/bin/bash\n# caf\xe9\nzeta\n")
    assert lint("--fix", "latin.sbatch")[0] == 0
    assert path.read_bytes() == b"#!/bin/bash\n# caf\xe9\neta\n"


def test_fix_reports_what_is_left(lint: Lint, folder: Path) -> None:
    (folder / "a.sbatch").write_text(GOOD + "zeta\ntrue # slurmgen: ignore[nosuch] so\n")
    status, out, _ = lint("--fix", "--format=json", "a.sbatch")
    assert status == 1
    assert [one["line"] for one in json.loads(out)] == [5]
    assert "\neta\n" in (folder / "a.sbatch").read_text()


def test_fix_mends_only_what_is_selected(lint: Lint) -> None:
    assert lint("--fix", "--select", "SG020", "wrong.sbatch")[0] == 0
    assert lint("wrong.sbatch")[0] == 1


def test_fix_of_a_file_that_cannot_be_written(
    lint: Lint, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.sbatch").write_text(WRONG)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("slurmgen.files._write", refuse)
    status, out, err = lint("--fix", "a.sbatch", "good.sbatch")
    assert status == 3
    assert FOUND in out
    assert "slurmgen: a.sbatch: cannot write a.sbatch: Permission denied" in err
    assert "slurmgen: 0 files changed; 1 error in 2 files\n" in err


def test_fix_of_standard_input_prints_the_script(lint: Lint) -> None:
    status, out, err = lint("--fix", "-", stdin=WRONG.encode())
    assert (status, out) == (0, WRONG.replace("zeta", "eta"))
    assert err == "slurmgen: 1 file changed; no findings in 1 file\n"
    left = GOOD + "true # slurmgen: ignore[nosuch] so\n"
    status, out, err = lint("--fix", "-", stdin=left.encode())
    assert (status, out) == (1, left)
    assert err.startswith("<stdin>:4:25: warning: ")


def test_diff_shows_what_fix_would_do_and_does_not(lint: Lint, folder: Path) -> None:
    before = files(folder)
    status, out, err = lint("--diff", "wrong.sbatch", "good.sbatch")
    assert status == 1
    assert out == (
        "--- wrong.sbatch\n"
        "+++ wrong.sbatch (fixed)\n"
        "@@ -1,4 +1,4 @@\n"
        " #!/bin/bash\n"
        " #SBATCH --time=1:00:00\n"
        " hostname\n"
        "-zeta 'é'\n"
        "+eta 'é'\n"
    )
    assert err == "slurmgen: 1 file would change; then no findings in 2 files\n"
    assert files(folder) == before
    assert lint("--diff", "good.sbatch")[:2] == (0, "")
    assert lint("--diff", "--fix", "wrong.sbatch")[:2] == (1, out)
    assert files(folder) == before


def test_a_profile_with_errors_is_told_once(lint: Lint, folder: Path) -> None:
    (folder / "cluster.yaml").write_text("nodes: 2\n")
    status, out, err = lint("--cluster", "./cluster.yaml", "wrong.sbatch", "good.sbatch")
    assert (status, out) == (2, "")
    assert err.count("cluster.yaml:1:1: error: ") == 1


def test_a_rule_that_breaks_is_our_bug_and_the_others_speak(
    lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(job: Job) -> Iterator[Finding]:
        raise ZeroDivisionError("in a rule")
        yield

    rules = (*registry.rules(), Rule("broken", "SG198", ERROR, check))
    monkeypatch.setattr(registry, "rules", lambda: rules)
    registry._by_name.cache_clear()
    status, out, err = lint("wrong.sbatch", "missing")
    assert status == 70
    assert FOUND in out
    assert "ZeroDivisionError: in a rule" in err
    assert "slurmgen: wrong.sbatch: the rule broken failed\n" in err
    assert lint("wrong.sbatch", "good.sbatch")[2].count("Traceback") == 1
    assert "this is a bug of slurmgen" in err
    assert "slurmgen: missing: cannot read it" in err
    status, out, _ = lint("--format=json", "wrong.sbatch")
    assert (status, len(json.loads(out))) == (70, 1)


JOB = """\
job_name: j
# slurmgen: ignore[SG199] a reason
nodes: 2
gpus_per_node: 4
command: |
  echo start
  zeta
  zeta  # slurmgen: ignore[no-zeta] a reason
  true  # slurmgen: ignore[no-zeta] a reason
"""


def test_findings_in_a_job_file_point_into_it(
    lint: Lint, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(job: Job) -> Iterator[Finding]:
        for number, line in enumerate(job.text.split("\n"), start=1):
            if line.lstrip().startswith("zeta") or line == "#SBATCH --nodes=2":
                column = len(line) - len(line.lstrip()) + 1
                yield Finding(Place(number, column, 4), "bad", "", "", edits=(Edit(0, 1, ""),))

    rules = (*registry.choose(["SG020"]), Rule("no-zeta", "SG199", ERROR, check))
    monkeypatch.setattr(registry, "rules", lambda: rules)
    registry._by_name.cache_clear()
    (folder / "job.yaml").write_text(JOB)
    (folder / "wrong.yaml").write_text("nodes: x\ncommand: a\n")
    status, out, err = lint("--fix", "job.yaml")
    assert status == 1
    assert [line for line in out.splitlines() if line.startswith("job.yaml")] == [
        "job.yaml:7:3: error: bad [no-zeta SG199]",
        "job.yaml:9:28: warning: nothing here is suppressed by no-zeta [unused-suppression SG020]",
    ]
    assert "7 |   zeta\n" in out
    assert "fixable" not in err
    assert (folder / "job.yaml").read_text() == JOB

    status, out, err = lint("job.yaml", "wrong.yaml", "--format=json")
    assert (status, err) == (2, "")
    assert paths(out) == ["job.yaml", "job.yaml", "wrong.yaml"]
    names = ["job.yaml", "job.yaml", "wrong.sbatch", "wrong.yaml"]
    assert paths(lint(".", "--format=json")[1]) == names


def test_explain(lint: Lint) -> None:
    status, out, err = lint("--explain", "SG020")
    assert (status, err) == (0, "")
    assert out.startswith("unused-suppression (SG020, warning)\n")
    status, out, _ = lint("--explain", "all")
    assert status == 0
    lines = [line.split()[:3] for line in out.splitlines()]
    assert ["SG020", "unused-suppression", "warning"] in lines
    # What other verbs print is explained too.
    assert lines[0] == ["SG001", "yaml-syntax", "error"]
