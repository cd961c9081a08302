"""Mistakes of every kind: a status, words of ours, and nothing printed or written."""

from __future__ import annotations

import gc
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.cli import main
from slurmgen.cli.commands import plan as plan_verb
from slurmgen.cli.commands import render as render_verb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
GOOD = "nodes: 2\ngpus_per_node: 4\ntime: 1h\ncommand: python train.py\n"
MANY = "9" * 5000
# What a person must not have to read: Pydantic's words, Python's and libyaml's own.
FOREIGN = (
    "Traceback",
    "pydantic",
    "Input should be",
    "Value error",
    "Unable to parse",
    "validation error",
    "Exceeds the limit",
    "recursion",
    "bug of slurmgen",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project folder to work in; `main` stops the garbage collector for good."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(GOOD)
    yield tmp_path
    gc.enable()


@pytest.fixture
def slurmgen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in this process: status, stdout, stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["slurmgen", *arguments])
        with pytest.raises(SystemExit) as caught:
            main.main()
        shown = capsys.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, shown.out, shown.err

    return call


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


COUNTS = (
    "nodes ntasks ntasks_per_node nproc_per_node cpus_per_task cpus_per_gpu gpus_per_node".split()
)
WRONG_FILES = [
    "",
    "-",
    "a: &a [*a]",
    "a: &a {b: *a}",
    "command: " + "[" * 600 + "]" * 600,
    "command: " + "[" * 5000 + "]" * 5000,
    "command: " + "{a: " * 600 + "}" * 600,
    "- " * 900 + "a",
    "\n".join(" " * i + "a:" for i in range(900)),
    "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "\n".join(
        f"{new}: &{new} [{','.join(['*' + old] * 9)}]"
        for old, new in zip("abcdefg", "bcdefgh", strict=True)
    ),
    "command: *nowhere",
    "command: x\n# ééé\njob_name: \x07",
    "command: x\n\tnodes: 2",
    "command: x\n---\ncommand: y",
    "command: x\n{a: b}: c",
    "command: !!python/object:os.system x",
    "command: 'x",
    "command:",
    "command: []",
    "command: ['', x]",
    "command: {a: b}",
    "command: [[x]]",
    'command: "\\0"',
    "nodes: 2",
    *(f"command: x\n{key}: {MANY}" for key in COUNTS),
    *(f"command: x\n{key}: -{MANY}" for key in COUNTS),
    "command: x\nnodes: 99999999",
    "command: x\nntasks: 99999999",
    "command: x\nnodes: 1.5",
    "command: x\ncpus_per_task: [1]",
    "command: x\ncpus_per_task: {a: 1}",
    "command: x\ncpus_per_task: nan",
    f"command: x\nnodelist: n[1-{MANY}]",
    f"command: x\nnodelist: n[{MANY}-{MANY}]",
    "command: x\nnodelist: n[0-65534][0-65534]",
    "command: x\nnodelist: n[" + ",".join(["0-65534"] * 500) + "]",
    "command: x\nnodelist: n[[1]]",
    *(f"command: x\n{key}: {MANY}" for key in ("mem", "time", "array", "signal", "gres", "begin")),
    *(f"command: x\n{key}: [[a]]" for key in ("mem", "time", "array", "signal", "gres", "output")),
    "command: x\nsbatch: {hint: [a]}",
    "command: x\nsbatch: [hint]",
    "command: x\nsbatch: {priority: " + MANY + "}",
    "command: x\nsetup: [a]",
    "command: x\nsetup: {modules: {load: {a: b}}}",
    "command: x\nsetup: {container: [a]}",
    "command: x\nenv: {A: [1]}",
    "command: x\nenv: {'': 1}",
    "command: x\nenv: {A: '${'}",
    "command: x\nlauncher: [srun]",
    "command: x\nrequeue: 7",
    "command: x\ntemplate: nosuch",
    "command: x\ntemplate: ../x",
    "command: x\ncluster: x",
    "command: x\nargs: x",
    "command: x\n" + "k" * 3000 + ": 1",
]


@pytest.mark.parametrize("text", WRONG_FILES, ids=range(len(WRONG_FILES)))
def test_a_wrong_file(
    folder: Path, slurmgen: Callable[..., tuple[int, str, str]], text: str
) -> None:
    (folder / "job.yaml").write_text(text)
    before = files(folder)
    for arguments in (["job.yaml"], ["job.yaml", "-o", "job.sbatch"]):
        status, out, err = slurmgen("render", *arguments)
        assert (status, out) == (2, "")
        assert [word for word in FOREIGN if word.lower() in err.lower()] == []
        assert err.startswith("job.yaml:")
        assert "= fix: " in err
        assert len(err) < 20_000
    assert files(folder) == before


WRONG_ARGUMENTS = {
    ("job.yaml", "-o", "."): 2,
    ("job.yaml", "-o", ""): 2,
    ("job.yaml", "-o", "/"): 2,
    ("job.yaml", "-o", ".."): 2,
    ("job.yaml", "-o", "no/such/folder"): 3,
    ("job.yaml", "-o", "job.yaml/x"): 3,
    ("job.yaml", "-o", "/dev/full"): 3,
    ("job.yaml", "-o", "x" * 300): 3,
    ("job.yaml", "--check", "nosuch"): 3,
    ("",): 3,
    ("x" * 300,): 3,
    ("no\x1b[31m.yaml",): 3,
    ("job.yaml", "--cluster", "nosuch"): 2,
    ("job.yaml", "--cluster", "nosuch.yaml"): 3,
    ("job.yaml", "--set", "nodes"): 2,
    ("job.yaml", "--set", "=1"): 2,
    ("job.yaml", "--set", "a..b=1"): 2,
    ("job.yaml", "--set", ".a=1"): 2,
    ("job.yaml", "--set", "a" + ".a" * 2000 + "=1"): 2,
    ("job.yaml", "--set", "nodes=2\nfoo: 1"): 2,
    ("job.yaml", "--set", "nodes=2\n---\nfoo: 1"): 2,
    ("job.yaml", "--set", "nodes=[1"): 2,
    ("job.yaml", "--set", "nodes="): 2,
    ("job.yaml", "--set", "nodes.x=1"): 2,
    ("job.yaml", "--set", f"nodes={MANY}"): 2,
    ("job.yaml", "--set", "job_name=a: b"): 2,
    ("job.yaml", "--set", "job_name=a\x07"): 2,
    ("job.yaml", "--set", "job_name=\udcff"): 2,
    ("job.yaml", "--set", "command=~"): 2,
    ("job.yaml", "--set", "template=nosuch"): 2,
    ("job.yaml", "--set", "sbatch.gpu-bind=nosuch"): 2,
    ("job.yaml", "job.yaml"): 2,
    ("job.yaml", "--nosuch"): 2,
    ("job.yaml", "--set"): 2,
}


@pytest.mark.parametrize("arguments", WRONG_ARGUMENTS, ids=range(len(WRONG_ARGUMENTS)))
def test_wrong_arguments(
    folder: Path, slurmgen: Callable[..., tuple[int, str, str]], arguments: tuple[str, ...]
) -> None:
    before = files(folder)
    status, out, err = slurmgen("render", *arguments)
    assert (status, out) == (WRONG_ARGUMENTS[arguments], "")
    assert [word for word in FOREIGN if word.lower() in err.lower()] == []
    assert err.replace("\n", "").isprintable()
    assert files(folder) == before


def test_the_words_for_a_count_out_of_bounds(
    folder: Path, slurmgen: Callable[..., tuple[int, str, str]]
) -> None:
    (folder / "job.yaml").write_text(f"command: x\nnodes: 99999999\ncpus_per_task: {MANY}\n")
    _, _, err = slurmgen("render", "job.yaml")
    assert 'job.yaml:2:8: error: nodes is "99999999"' in err
    assert "= fix: write 65533 or less" in err
    assert f'job.yaml:3:16: error: cpus_per_task is "{"9" * 60}…"' in err
    assert "= fix: write a smaller number" in err


@pytest.mark.parametrize("origin", ["file", "--set"])
def test_a_template_that_is_missing_is_shown_where_it_is_named(
    folder: Path, slurmgen: Callable[..., tuple[int, str, str]], origin: str
) -> None:
    if origin == "file":
        (folder / "job.yaml").write_text(GOOD + "template: nosuch\n")
        _, _, err = slurmgen("render", "job.yaml")
        assert err.startswith("job.yaml:5:11: error: ")
    else:
        _, _, err = slurmgen("render", "job.yaml", "--set", "template=nosuch")
        assert err.startswith("--set template=nosuch:1:1: error: ")
    assert 'there is no template "nosuch.sbatch.j2"' in err


@pytest.mark.parametrize("name", ["a\nb.yaml", "\udcff.yaml"])
def test_a_file_whose_name_cannot_be_the_jobs(
    folder: Path, slurmgen: Callable[..., tuple[int, str, str]], name: str
) -> None:
    (folder / name).write_text(GOOD)
    status, out, err = slurmgen("render", name)
    assert (status, out) == (2, "")
    assert "the file's name" in err
    assert "add job_name" in err
    (folder / name).write_text(GOOD + "job_name: a\n")
    assert slurmgen("render", name)[0] == 0


# --- where the script goes -----------------------------------------------------------


def test_a_symlink_stays_and_its_target_keeps_its_mode(
    folder: Path, slurmgen: Callable[..., tuple[int, str, str]]
) -> None:
    (folder / "real").write_text("old")
    (folder / "real").chmod(0o640)
    (folder / "link").symlink_to("real")
    (folder / "dangling").symlink_to("new")
    script = slurmgen("render", "job.yaml")[1]
    assert slurmgen("render", "job.yaml", "-o", "link") == (0, "", "")
    assert slurmgen("render", "job.yaml", "-o", "dangling") == (0, "", "")
    assert (folder / "link").is_symlink()
    assert (folder / "real").read_text() == (folder / "new").read_text() == script
    assert stat.S_IMODE((folder / "real").stat().st_mode) == 0o640
    assert [p.name for p in folder.iterdir() if p.name.endswith(".tmp")] == []


def test_a_device_stays_a_device(
    folder: Path, slurmgen: Callable[..., tuple[int, str, str]]
) -> None:
    null = folder / "null"
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError:
        pytest.skip("making a device takes root")
    assert slurmgen("render", "job.yaml", "-o", str(null)) == (0, "", "")
    assert slurmgen("plan", "job.yaml", "--svg", str(null)) == (0, "", "")
    assert null.is_char_device()


# --- as a shell starts it ------------------------------------------------------------


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A line of Bash in which `$SG` is slurmgen."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SG": f"{sys.executable} -m slurmgen",
    }
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("$SG render - <&-", 2, "standard input is closed"),
        ("$SG render job.yaml >&-", 3, "cannot write to stdout: it is closed"),
        ("$SG render job.yaml > /dev/full", 3, "cannot write to stdout: No space left"),
        ("$SG plan job.yaml > /dev/full", 3, "cannot write to stdout: No space left"),
        ("$SG --help > /dev/full", 3, "cannot write to stdout: No space left"),
        ("$SG render nosuch 2>&-", 3, ""),
        ("$SG render nosuch 2> /dev/full", 3, ""),
        ("mkdir a; cd a; rmdir ../a; $SG render - < ../job.yaml", 3, "the working folder"),
        (r"printf 'nodes: 2\ncommand: \xff' | $SG render -", 2, "<stdin>:2:10: error: byte 0xff"),
    ],
)
def test_streams_that_are_closed_full_or_no_text(
    folder: Path, command: str, status: int, said: str
) -> None:
    done = shell(folder, command)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
    assert [word for word in (*FOREIGN, "Exception") if word in done.stderr] == []


def test_output_into_ones_own_stdout(folder: Path) -> None:
    script = shell(folder, "$SG render job.yaml").stdout
    assert shell(folder, "$SG render job.yaml -o /dev/stdout").stdout == script
    # What a shell has written there before stays.
    assert shell(
        folder, "{ echo first; $SG render job.yaml -o /dev/stdout; } > out; cat out"
    ).stdout == ("first\n" + script)
    assert shell(folder, "$SG render job.yaml -o >(cat) | cat").stdout == script


# --- Ctrl-C --------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["render", "plan"])
def test_ctrl_c_is_130_and_no_traceback(
    slurmgen: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr({"render": render_verb, "plan": plan_verb}[verb], "run", interrupted)
    assert slurmgen(verb, "job.yaml") == (130, "", "")


def test_ctrl_c_at_a_terminal(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    process = subprocess.Popen(
        # A background job of a shell ignores it, and so does what it starts.
        ["env", "--default-signal=INT", sys.executable, "-m", "slurmgen", "render", "pipe"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    )
    # Opening a pipe returns once the other side reads it: slurmgen has come that far.
    with open(folder / "pipe", "wb"):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")


# --- sandbox exec --------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "exec --name nosuch squeue -h",
        "exec --name nosuch squeue --help",
        "exec --name nosuch -- squeue --name x",
    ],
)
def test_options_behind_a_command_are_its_own(
    slurmgen: Callable[..., tuple[int, str, str]], line: str
) -> None:
    status, out, err = slurmgen("sandbox", *line.split())
    assert (status, out) == (3, "")
    assert "no sandbox 'nosuch' is up" in err


def test_sandboxes_of_another_folder(
    folder: Path, slurmgen: Callable[..., tuple[int, str, str]]
) -> None:
    assert slurmgen("sandbox", "status", "--dir", "x") == (0, "", "")
    status, out, err = slurmgen("sandbox", "down", "--name", "nosuch", "--dir", "x")
    assert (status, out, err) == (0, "", "slurmgen: there was no sandbox 'nosuch'\n")
    _, _, err = slurmgen("sandbox", "exec", "--name", "s", "--dir", "x", "sinfo")
    assert "slurmgen sandbox up --name s --dir x\n" in err
    assert files(folder) == {str(folder / "job.yaml"): GOOD.encode()}
