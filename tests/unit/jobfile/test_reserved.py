"""The names that a job file may not set: Bash's, the script's, Slurm's, torchrun's."""

from __future__ import annotations

import ast
import importlib.util
import textwrap
from pathlib import Path
from typing import Any

import pytest

from slurmgen import Job
from slurmgen.errors import InvalidInput
from slurmgen.jobfile import bash_variables, reserved, script_names
from slurmgen.resources import templates_dir
from tests import script_names as asked

ROOT = Path(__file__).resolve().parents[3]
TABLE = '''\
"""Every name that the built-in templates set, read or give a function; read from them by a test.

`pytest --update-golden tests/unit/jobfile/test_reserved.py` writes it again. Slurm's own variables
are known by their prefix.
"""

from __future__ import annotations

NAMES = frozenset(
    "{names}".split()
)
'''


def refused(**keys: Any) -> str:
    """What is said of a job with these keys, "" if it is valid."""
    try:
        Job(command=["true"], **keys)
    except InvalidInput as error:
        return "\n".join(d.message for d in error.diagnostics)
    return ""


def test_the_table_is_what_the_templates_use(request: pytest.FixtureRequest) -> None:
    found = {n for n in asked.of_templates() | asked.of_rendered() if not n.startswith("SLURM_")}
    if request.config.getoption("--update-golden"):
        lines = textwrap.wrap(" ".join(sorted(found)), 92)
        text = TABLE.format(names=' "\n    "'.join(lines))
        (ROOT / "slurmgen/jobfile/script_names.py").write_text(text)
        pytest.skip("written again")
    assert sorted(script_names.NAMES) == sorted(found)


def test_nothing_that_the_script_uses_can_be_set() -> None:
    free = {"OMP_NUM_THREADS", "PATH", "SLURMGEN_FAILURE", "UV_NO_SYNC"}
    used = asked.of_templates() | asked.of_rendered()
    assert {name for name in used if reserved.refused_variable(name) is None} == free & used


def test_what_reads_the_environment_as_options_is_known_by_its_prefix() -> None:
    """Every program of Slurm that the templates call."""
    called = set()
    for path in sorted(templates_dir().rglob("*.j2")):
        text = asked._STATEMENT.sub("", path.read_text())
        called |= asked.commands(asked._VALUE.sub("x", text))
    programs = {"scancel", "scontrol", "squeue", "srun"}
    others = {"sacct", "salloc", "sattach", "sbcast", "sinfo", "sstat"}
    assert called & (programs | others) == programs
    for program in programs:
        assert reserved.refused_variable(f"{program.upper()}_ANY") is not None


def test_the_variables_of_torchrun_are_those_in_its_source() -> None:
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        pytest.skip("needs torch, which is not installed")
    agent = Path(found.origin).parent / "distributed/elastic/agent/server/local_elastic_agent.py"
    own = set()
    for node in ast.walk(ast.parse(agent.read_text())):
        target = node.target if isinstance(node, ast.AnnAssign) else None
        targets = node.targets if isinstance(node, ast.Assign) else [target]
        if not any(isinstance(t, ast.Name) and t.id == "worker_env" for t in targets):
            continue
        assert isinstance(node, (ast.Assign, ast.AnnAssign))
        assert isinstance(node.value, ast.Dict)
        pairs = zip(node.value.keys, node.value.values, strict=True)
        own |= {ast.literal_eval(k) for k, v in pairs if k and "getenv" not in ast.unparse(v)}
    assert "RANK" in own
    assert own <= reserved.TORCHRUN


_ALONE = "for the program alone: command: env {name}=… PROGRAM"
_CODE = "code goes into setup.commands"


@pytest.mark.parametrize(
    ("name", "why", "fix"),
    [
        *((name, "arithmetic", _ALONE) for name in sorted(bash_variables.EVALUATED)),
        *((name, "runs what it says", _CODE) for name in sorted(bash_variables.READ_AS_CODE)),
        ("BASH_FUNC_srun", "runs what it says", _CODE),
        ("SHELLOPTS", "can't be set", _ALONE),
        ("SHLVL", "a value of its own", _ALONE),
        ("LINENO", "a value of its own", _ALONE),
        ("TMOUT", "goes other ways", _ALONE),
    ],
)
def test_a_name_of_bash_s_is_refused_with_the_reason_and_what_to_do(
    name: str, why: str, fix: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        Job(command=["true"], env={name: "1"})
    (found,) = caught.value.diagnostics
    assert found.message == f"{name} belongs to Bash"
    assert why in found.why
    assert fix.format(name=name) in found.fix


@pytest.mark.parametrize(
    "name",
    "LD_LIBRARY_PATH LD_PRELOAD PATH PYTHONPATH HOME LANG LC_ALL TZ TMPDIR TERM OMP_NUM_THREADS "
    "NCCL_DEBUG CUDA_LAUNCH_BLOCKING TORCH_NCCL_ASYNC_ERROR_HANDLING SLURMGEN_CHECKS "
    "SLURMGEN_FAILURE http_proxy HF_HOME".split(),
)
def test_what_people_set_stays_allowed(name: str) -> None:
    assert refused(env={name: "1"}) == ""


@pytest.mark.parametrize("name", ["OPTIND", "BASH_ENV", "MASTER_ADDR", "commas", "SQUEUE_STATES"])
def test_a_directive_sets_nothing_else_either(name: str) -> None:
    """Bash reads BASH_ENV of `--export` when the batch script starts."""
    assert name in refused(export=f"ALL,{name}=x")
    assert refused(export=f"ALL,{name}") == ""
    assert refused(export="ALL,A=1") == ""


def test_a_place_for_the_failure_is_left_alone() -> None:
    """The script exports its own only if the job gives none."""
    assert "failure.json" in Job(ddp="train.py").render()
    text = Job(ddp="train.py", env={"SLURMGEN_FAILURE": ""}).render()
    assert "export SLURMGEN_FAILURE=''" in text
    assert "failure.json" not in text
