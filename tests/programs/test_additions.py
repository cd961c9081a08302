"""What is added by the rows of CONTRIBUTING.md works: an option, a rule of lint, a profile.

Keys are added in `jobfile/test_a_new_key.py`, launchers in `script/test_launchers.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.copied import copy, put_before, run_tests, slurmgen

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=1:00:00
#SBATCH --accent={}
srun hostname
"""


def test_an_option_is_a_row(tmp_path: Path) -> None:
    tree = copy(tmp_path / "tree", "tests/unit/jobfile")
    # A letter that is free, a value that one of `values.py` reads.
    row = "accent               -      required -     -     both   j     from-1\n"
    put_before(tree / "slurmgen/slurm/options/catalog.py", "account              A ", row)
    tests = ("tests/unit/jobfile/test_options.py", "tests/unit/jobfile/test_option_values.py")
    told = run_tests(tree, *tests)
    assert told.returncode == 0, told.stdout

    job = tmp_path / "job.yaml"
    job.write_text("command: [hostname]\ntime: 1h\nsbatch: {accent: 3}\n")
    rendered = slurmgen(tree, "render", "job.yaml", cwd=tmp_path)
    assert "#SBATCH --accent=3\n" in rendered.stdout, rendered.stderr
    job.write_text("command: [hostname]\ntime: 1h\nsbatch: {accent: 0}\n")
    assert "job.yaml:3:10: error" in slurmgen(tree, "render", "job.yaml", cwd=tmp_path).stderr

    script = tmp_path / "job.sbatch"
    script.write_text(SCRIPT.format(3))
    assert slurmgen(tree, "lint", "job.sbatch", cwd=tmp_path).returncode == 0
    script.write_text(SCRIPT.format("no"))
    assert "bad-option-value" in slurmgen(tree, "lint", "job.sbatch", cwd=tmp_path).stdout
    script.write_text(SCRIPT.format(3).replace("accent", "accemt"))
    assert "accent" in slurmgen(tree, "lint", "job.sbatch", cwd=tmp_path).stdout


RULE = '''\
"""The name of the job has an x in it.

## What it does

Finds `--job-name` with an x.

## Why is this bad

It isn't; this is a rule of a test.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --time=1:00:00
#SBATCH --job-name=box
srun hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --time=1:00:00
#SBATCH --job-name=bin
srun hostname
```

## References

- sbatch(1), --job-name
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import WARNING
from slurmgen.lint.facts.python import directive_place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "name-with-x"
CODE = "SG699"
SEVERITY = WARNING


def check(job: Job) -> Iterator[Finding]:
    directive = job.request.directive("job-name")
    if directive is not None and "x" in (directive.value or ""):
        yield Finding(
            directive_place(directive), "the name has an x", "a test says so", "drop the x"
        )
'''


def test_a_rule_is_a_module_a_line_and_a_script(tmp_path: Path) -> None:
    tree = copy(
        tmp_path / "tree",
        "README.md",
        "docs",
        "tests/docs",
        *(f"tests/lint/{name}" for name in LINT),
    )
    (tree / "slurmgen/lint/rules/name_with_x.py").write_text(RULE)
    rules = tree / "slurmgen/lint/rules/__init__.py"
    rules.write_text(rules.read_text().removesuffix(")\n") + '    "name_with_x",\n)\n')
    shown = '    "name-with-x": Reason("it is a rule of a test"),\n'
    put_before(tree / "tests/docs/claims.py", '    "nccl-fallback-left-on": ', shown)
    case = tree / "tests/lint/cases/900-an-x"
    case.mkdir(parents=True)
    (case / "job.sbatch").write_text("#!/bin/bash\n#SBATCH -t 60:00 -J fox\nsrun hostname\n")
    (case / "case.yaml").write_text("root_cause: name-with-x\nlines: {job.sbatch: [2]}\n")
    written = run_tests(
        tree, "tests/lint/test_documentation.py", "-k", "up_to_date", "--update-golden"
    )
    assert written.returncode == 0, written.stdout
    assert "(name-with-x.md)" in (tree / "docs/rules/README.md").read_text(encoding="utf-8")
    told = run_tests(
        tree,
        *(
            "tests/lint/test_rules.py",
            "tests/lint/test_cases.py",
            "tests/lint/test_documentation.py",
        ),
        "-k",
        "x or module or order or once or hide or every_rule",
    )
    assert told.returncode == 0, told.stdout
    assert "900-an-x" in run_tests(tree, "tests/lint/test_cases.py", "--collect-only").stdout


LINT = ("asking.py", "conftest.py", "test_cases.py", "test_documentation.py", "test_rules.py")


def test_a_cluster_is_a_file_an_account_and_an_example(tmp_path: Path) -> None:
    tree = copy(
        tmp_path / "tree",
        "tests/unit/cluster/test_builtin_profiles.py",
        *(f"tests/golden/{name}" for name in ("sites", "test_sites.py", "test_site_examples.py")),
    )
    clusters = tree / "configs/clusters"
    text = (clusters / "cannon.yaml").read_text(encoding="utf-8")
    (clusters / "elsewhere.yaml").write_text(text.replace("Cannon", "Elsewhere"), encoding="utf-8")
    sites = tree / "tests/golden/sites"
    put_before(sites / "who.yaml", "\nfir: {", "\nelsewhere: {partition: gpu}")
    put_before(
        sites / "examples.yaml",
        "\ncannon:\n",
        "\nelsewhere:\n  asks: --nodes=2 --ntasks-per-node=1 --cpus-per-task=1 "
        "--gpus-per-node=1 --time=00:10:00 --partition=gpu\n  launch: srun\n"
        "  job: {nodes: 2, gpus_per_node: 1, time: 10m, partition: gpu}\n"
        "  differs:\n    job-name: a job is always named, by its file\n",
    )
    written = run_tests(tree, "tests/golden/test_sites.py", "-k", "elsewhere", "--update-golden")
    assert written.returncode == 0, written.stdout
    assert "partition=gpu" in (sites / "elsewhere.txt").read_text(encoding="utf-8")
    told = run_tests(tree, "tests/golden", "tests/unit/cluster", "-k", "elsewhere or nobody")
    assert told.returncode == 0, told.stdout
    shown = slurmgen(tree, "cluster", "show", "elsewhere", cwd=tmp_path)
    assert "Elsewhere" in shown.stdout, shown.stderr
