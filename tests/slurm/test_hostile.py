"""Strings that would break a careless quoting reach the program byte for byte."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.jobfile.reserved import refused_variable
from tests import asking_bash
from tests.slurm.conftest import PROBE

if TYPE_CHECKING:
    from tests.slurm.conftest import Cluster, Ran

pytestmark = pytest.mark.slurm

HOSTILE = [
    "",
    " ",
    "two words",
    "'single' \"double\"",
    "it's",
    "$(touch /tmp/slurmgen-pwned) `id` $HOME ${HOME} $$",
    "; exit 1 #",
    "# not a comment",
    "back\\slash \\n \\",
    "line\nbreak\r\nand\ttab",
    "\n#SBATCH --nodes=9",
    "-leading dash",
    "--",
    "--help",
    "*?[a-z]{1,2}~",
    "!history & | < > ( )",
    "ünïcödé 日本 \U0001f600 \u00a0\u200b",
    "\x01\x1b[31m\x7f",
    "COMMAND",
    "%j %x %%",
    "=",
    "A=b",
]


def arguments(ran: Ran) -> list[list[str]]:
    return [[w.encode("latin-1").decode() for w in seen["argv"]] for seen in ran.seen]


def values(ran: Ran, name: str) -> set[str]:
    return {seen["env"][name].encode("latin-1").decode() for seen in ran.seen}


SHAPES: dict[str, dict[str, Any]] = {
    "srun": {"nodes": 2, "ntasks_per_node": 1},
    "spawn": {"nodes": 2, "launcher": "spawn"},
    "plain": {"launcher": "plain"},
    "torchrun": {"nodes": 2, "launcher": "torchrun"},
    "torchrun c10d": {"nodes": 1, "launcher": "torchrun", "rdzv": "c10d"},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_words_and_variables_arrive_byte_for_byte(cluster: Cluster, shape: str) -> None:
    if shape.startswith("torchrun"):
        pytest.importorskip("torch", reason="needs torch, which is not installed")
    names = {f"HOSTILE_{number}": text for number, text in enumerate(HOSTILE)}
    escaped = {name: text.replace("${", "$${") for name, text in names.items()}
    words = ["python", str(PROBE), *HOSTILE]
    ran = cluster.run({**SHAPES[shape], "command": words, "env": escaped})
    assert ran.status == 0, ran.log
    assert len(ran.seen) == SHAPES[shape].get("nodes", 1)
    for seen in arguments(ran):
        assert seen == HOSTILE
    for name, text in names.items():
        assert values(ran, name) == {text}


# Slurm and the probe are found by PATH; slurmd makes /tmp of a TMPDIR that it can't make, and
# Python gives LC_CTYPE a value of its own (PEP 538).
_NEEDED = {"HOME", "LC_CTYPE", "PATH", "TMPDIR"}


def test_any_name_that_bash_knows_arrives_or_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """The batch shell, srun's and the task's, with every value a command for arithmetic."""
    marker = tmp_path / "marker"
    value = f"a[$(touch {marker})]"
    known = {n for n in asking_bash.names("bash") if refused_variable(n) is None} - _NEEDED
    known.add("LD_LIBRARY_PATH")
    assert {"TERM", "HOSTNAME"} <= known
    env = dict.fromkeys(sorted(known), value)
    ran = cluster.run({"ntasks_per_node": 2, "command": ["python", str(PROBE)], "env": env})
    assert ran.status == 0, ran.log
    changed = [{n for n in known if seen["env"].get(n) != value} for seen in ran.seen]
    assert changed == [set()] * 2
    assert not marker.exists()


def test_a_hundred_thousand_bytes_in_one_word(cluster: Cluster) -> None:
    words = ["x" * 100_000, "'" * 100_000]
    ran = cluster.run({"ntasks_per_node": 2, "command": ["python", str(PROBE), *words]})
    assert ran.status == 0, ran.log
    assert arguments(ran) == [words, words]


@pytest.mark.parametrize(
    "text",
    [
        'echo "it\'s $SLURM_PROCID" \'and "more"\' `echo ticks` $((1 + 1)) \\\n  continued',
        "COMMAND\necho after the delimiter\nCOMMAND_",
        "cat <<'EOF'\n$HOME\nEOF\necho done",
        "}\necho brace",
        "# a comment only\ntrue",
    ],
)
def test_a_command_string_is_bash_in_each_task_and_nowhere_else(
    cluster: Cluster, text: str
) -> None:
    """Each task gets exactly the text: here as the argument that `bash -c` was given."""
    catch = f'python {PROBE} "$BASH_EXECUTION_STRING"\nexit 0\n'
    ran = cluster.run({"ntasks_per_node": 2, "command": catch + text})
    assert ran.status == 0, ran.log
    assert arguments(ran) == [[catch + text + "\n"]] * 2


def test_names_comments_and_paths_do_not_become_directives(cluster: Cluster) -> None:
    name = "a \"b\" 'c' #d $HOME `e` \\ --nodes=9"
    ran = cluster.run({"job_name": name, "comment": name + " ü", "command": ["python", str(PROBE)]})
    assert ran.status == 0, ran.log
    assert values(ran, "SLURM_JOB_NAME") == {name}
    assert values(ran, "SLURM_JOB_NUM_NODES") == {"1"}


APPTAINER = """\
#!/bin/bash
# Stands in for apptainer: notes its own arguments, and runs the program as it is.
printf '%s\\n' "$@" > "$PROBE_FOLDER/apptainer-$SLURM_PROCID"
while [ "$1" != "$IMAGE" ]; do shift; done
shift
exec "$@"
"""


def test_words_arrive_through_a_container(cluster: Cluster, tmp_path: Path) -> None:
    stand_in = tmp_path / "apptainer"
    stand_in.write_text(APPTAINER)
    stand_in.chmod(0o755)
    image = "/images/it's $HOME.sif"
    path = cluster.sandbox.environment()["PATH"]
    ran = cluster.run(
        {
            "nodes": 2,
            "gpus_per_node": 2,
            "setup": {
                "container": {
                    "image": image,
                    "runtime": "apptainer",
                    "mounts": ["/data:/data:ro", "${PROBE_FOLDER}"],
                    "workdir": "/a b",
                }
            },
            "env": {"PATH": f"{tmp_path}:{Path(sys.executable).parent}:{path}", "IMAGE": image},
            "command": ["python", str(PROBE), *HOSTILE],
        }
    )
    assert ran.status == 0, ran.log
    assert arguments(ran) == [HOSTILE] * 4
    assert sorted(seen["env"]["RANK"] for seen in ran.seen) == ["0", "1", "2", "3"]
    folder = ran.seen[0]["env"]["PROBE_FOLDER"]
    noted = Path(folder, "apptainer-0").read_text().split("\n")
    mounts = ["--bind", "/data:/data:ro", "--bind", folder]
    assert noted[:9] == ["exec", "--nv", *mounts, "--pwd", "/a b", image]
