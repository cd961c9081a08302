"""From a line of a rendered script to the line of the job file that says it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slurmgen.cli.commands import lint
from slurmgen.diagnostics import Place
from slurmgen.lint.rendered import as_linted
from slurmgen.script.pipeline import plan_job, render_job

TEXT = """\
# nodes: 7
nodes: 2
gpus_per_node: 2
sbatch: {gpus_per_task: 1, hint: nomultithread}
env:
  # A: b
  C: b
  A: b
setup:
  commands:
    - export X=1
    - |
      export X=1
      cd work
command: |
  # python train.py
  python train.py

    python train.py
  export X=1
"""
ENDS = {
    "#SBATCH --nodes=2": [2],
    "export A=b": [8],
    "export C=b": [7],
    "export X=1": [11, 13, 20],
    "cd work": [14],
    "python train.py": [17],
    "# python train.py": [16],
    "  python train.py": [19],
}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("job.yaml")
    path.write_text(TEXT.replace("gpus_per_task: 1, ", ""))
    return path


def test_every_line_is_found_where_it_was_written(job: Path) -> None:
    planned = plan_job(str(job))
    script = render_job(planned)
    origin = as_linted(planned, script).origin
    assert origin is not None
    found: dict[str, list[int]] = {}
    for number, line in enumerate(script.split("\n"), start=1):
        if line in ENDS:
            place = origin.locate(Place(number, 1))
            assert place.path == "job.yaml"
            found.setdefault(line, []).append(place.line)
    assert found == ENDS


FAULTY = """\
nodes: 2
gpus_per_node: 2
time: 1h
env:
  NCCL_SOCKET_IFNAME: lo
setup:
  commands:
    - ulimit -c 0
    - |
      cd $SCRATCH/work
      export CUDA_VISIBLE_DEVICES=0
command: python train.py
"""


def test_a_finding_in_a_script_has_the_line_of_its_job_file(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job.write_text(FAULTY)
    script = job.with_suffix(".sbatch")
    script.write_text(render_job(plan_job(str(job))))

    def also() -> list[str]:
        assert lint.run(["job.sbatch"], slurm="22.05") == 1
        return re.findall(r"= also: (.*)", capsys.readouterr().out)

    assert also() == ["job.yaml:5:23", "job.yaml:11:14"]
    # Nobody knows whether it is still so where either has changed.
    job.write_text(f"{FAULTY}comment: new\n")
    assert also() == []
    job.write_text(FAULTY)
    script.write_text(script.read_text() + "echo done\n")
    assert also() == []
