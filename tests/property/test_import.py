"""Any text: an import never fails, loses nothing, and changes nothing when it is made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmgen.importer import NotImportable, check, import_script
from slurmgen.importer.yaml_text import Entry, write
from slurmgen.jobfile.source import parse_yaml
from slurmgen.reading.script import BatchScript
from tests.examples import examples
from tests.work import calls

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(ROOT.glob("tests/lint/*/*/job.sbatch"))


def data_of(text: str) -> dict[str, Any]:
    return parse_yaml(text, "job.yaml").data


def check_import(text: str) -> None:
    """Import, render, import again."""
    try:
        job = import_script(text, name="job.sbatch").text
    except NotImportable:
        # Larger than sbatch takes; nothing else here is.
        assert len(text) > 4_000_000
        return
    script = check.rendered(job)
    assert script is not None, job
    plain = text.replace("\r\n", "\n").removeprefix("\ufeff")
    if "\r\n" not in plain:
        before, after = BatchScript(plain), BatchScript(script)
        data = data_of(job)
        if "script" in data:
            assert check.effective(after.block) == check.effective(before.block)
        else:
            found = check.effective(after.block)
            assert check.effective(before.block).items() <= found.items()
    again = import_script(script, name="job.sbatch").text
    assert data_of(again) == data_of(job)
    assert list(data_of(again)) == list(data_of(job))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.parent.name)
def test_scripts(path: Path) -> None:
    check_import(path.read_bytes().decode())


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(NotImportable, match="byte 0xe9 in line 2 is not UTF-8 text"):
        import_script(b"#!/bin/bash\n# caf\xe9\n".decode(errors="surrogateescape"), name="a")


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)
LINES = [
    "#!/bin/bash", "#!/bin/bash -l", "#!/usr/bin/env python3", "#! /bin/sh", "", " ", "#", "\t",
    "# a comment: with # and 'quotes'", "#SBATCH", "#SBATCH hetjob", "#SBATCH --nodes=2",
    "#SBATCH -N 2 -n 8", "#SBATCH --ntasks-per-node=4 # each", "#SBATCH --gres=gpu:4",
    "#SBATCH --gres=gpu:a100:4,nvme:1", "#SBATCH --gpus-per-node=4", "#SBATCH -c 8",
    "#SBATCH --job-name='two words'", "#SBATCH --mail-type=END", "#SBATCH --mail-type=FAIL",
    "#SBATCH --time=90m", "#SBATCH --time=1-0", "#SBATCH --exclusive", "#SBATCH --oversubscribe",
    "#SBATCH --requeue", "#SBATCH --no-requeue", "#SBATCH --image=a:b",
    "#SBATCH --hint=nomultithread",
    "#SBATCH --mem 4 GB", "#SBATCH -J=x", '#SBATCH --comment="a', "#SBATCH --output=%x-%j.out",
    "#SBATCH --export=ALL,A=b", "#PBS -l nodes=2", "##SBATCH --mem=1", "#SBATCH --gpus=8",
    "# Rendered by slurmgen 0.1.0 from a.yaml", "# Change a.yaml and render again",
    "set -euo pipefail", "module purge", "module load cuda/12 gcc", "source .venv/bin/activate",
    'eval "$(conda shell.bash hook)"', "conda activate x", "export A=1", 'export B="$A ${HOME}"',
    "export C='it''s $x'", "export D=$(date)", "export MASTER_PORT=29500", "echo hi  # there",
    "cd $SLURM_SUBMIT_DIR", "x=1", "python train.py --lr 1e-3", "srun python train.py",
    "srun -n 8 python train.py $A \\", "  --more", "torchrun --standalone --nproc_per_node=4 t.py",
    "srun --container-image=a.sqsh python t.py", "apptainer exec --nv x.sif python t.py",
    "cat <<EOF", "EOF", "if true; then", "fi", "wait", "python a.py &", "}", "COMMAND",
    "é ü \u2028",
    "\x0c", "a\rb", "\x85", "\ufeff", "'", '"', "exec python $1", "# shellcheck disable=SC2086",
]  # fmt: skip
SCRIPT = st.lists(st.sampled_from(LINES) | TEXT, max_size=14).map("\n".join)


@settings(max_examples=examples(600))
@given(SCRIPT | SCRIPT.map(lambda text: "#!/bin/bash\n" + text) | TEXT)
def test_any_script(text: str) -> None:
    check_import(text)


WORDS = st.sampled_from(
    "#SBATCH export srun python bash -c --nodes=2 -n 4 $A ${A} $(id) `id` ' \" \\ \n ; & | && || "
    "( ) { } < > << # = [ ] * ? ~ ! %j a b \t if then fi for do done".split(" ")
)


@settings(max_examples=examples(400))
@given(st.lists(WORDS, max_size=40).map(" ".join))
def test_any_words(text: str) -> None:
    check_import(f"#!/bin/bash\n#SBATCH -c 2\n{text}\n")


NAMES = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["1.10", "NO", "null", "~", "4:00:00", "0123", "- a", "a: b", "a #b", " a", "a ", "\ta", "\n a",
     "a\n", "a\n\n", "\n", "a\n\n\nb\n", "  a\n b", "|", ">", "%a", "@a", "`a", "!a", "&a", "*a",
     "", "'", '"', "\\", "{a}", "[a]", ",", "?", ":", "a:", "---", "...", "=", "<<", "2030-01-02"]
)  # fmt: skip


@settings(max_examples=examples(600))
@given(
    st.dictionaries(
        NAMES, VALUES | st.lists(VALUES.filter(lambda v: "\n" not in v), min_size=1), max_size=4
    )
)
def test_every_value_is_read_back(values: dict[str, Any]) -> None:
    entries = [Entry(name, value, above=("# over",)) for name, value in values.items()]
    nested = Entry("nested", [Entry(name, value) for name, value in values.items()])
    expected: dict[str, Any] = dict(values)
    if values:
        entries.append(nested)
        expected["nested"] = values
    assert data_of(write(entries)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/bash\n" + "#SBATCH --nodes=2\n" * 60_000,
        "#!/bin/bash\n" + "echo hello  # a comment\n" * 160_000,
        "#!/bin/bash\n" + "# a comment\n" * 300_000 + "#SBATCH -n1\n",
        "#!/bin/bash\n" + "export A=1\n" * 5_900,
        "#!/bin/bash\n#SBATCH -c1\npython t.py " + "$(" * 20_000,
        "#!/bin/bash\n#SBATCH --comment=" + "a" * 3_900_000 + "\n",
        "#!/bin/bash\n" + "é" * 2_090_000,
        "#!/bin/bash\n#SBATCH -c1\n" + "a;" * 30_000,
        "#!/bin/bash\n" + "\x01" * 1_000_000,
    ],
    ids=range(9),
)
def test_large_scripts(text: str) -> None:
    # Two imports; a hang is far more.
    assert calls(lambda: check_import(text)) < 150_000_000


# --- scripts that have keys for everything --------------------------------------------

SETUPS = [
    "set -e", "set -euo pipefail", "module purge", "module use $HOME/modules /opt/m", "ml a/1 b",
    "module load cuda/12.4  # for nvcc", "source ~/v/bin/activate", '. "$HOME/a b/bin/activate"',
    'eval "$(conda shell.bash hook)"\nconda activate "${HOME}/envs/x"', "# a comment",
]  # fmt: skip
EXPORTS = [
    "export A=1 B=two", "export C='it is $x `y` \"z\"'", 'export D="a ${HOME}/b $USER\'s"',
    "export E=", "export F=\"a\\$b\\\\c\\\"d\"", "export G=$'t\\tn\\n'", "export OMP_NUM_THREADS=4",
    "export H=é~x",
    "export PYTHONPATH=$PWD:$PYTHONPATH", "# over", "export I='${X}$'", "export J=$HOME$USER",
]  # fmt: skip
COMMANDS = [
    "echo start", "cd $SLURM_SUBMIT_DIR", "mkdir -p out", "nvidia-smi", "x=3", "ulimit -n 4096",
    "# about the next", "if [ -f a ]; then\n  echo a | cat\nfi",
    "cat > f <<'EOT'\n#SBATCH -N9\n  x\nEOT",
    "export LATER=$(date)", "export MASTER_PORT=29500", "module load late", "",
]  # fmt: skip
PORT = "$((9000 + SLURM_JOB_ID % 99))"
LAUNCHES = [
    ("1", "1", "python -u train.py --lr 1e-3 \\\n    --name \"$A\" > log 2>&1"),
    ("1", "1", "srun --ntasks=1 ./solver 'a b' $HOME/x*"),
    ("4", "4", "srun -K --cpus-per-task=$SLURM_CPUS_PER_TASK python train.py \"$SLURM_JOB_ID\""),
    ("1", "1", "set -x\npython a.py $1 | tee log\nstatus=$?\nwait\nexit $status"),
    ("1", "1", "x=(1 2)\ntrap 'rm $A' EXIT\nfor i in ${x[@]}; do python a.py & done; wait"),
    ("4", "4", "n=$(nproc)\nsrun -l python a.py \"$n\" \"$@\""),
    ("4", "4", f"export MASTER_PORT={PORT}\nsrun bash -c '\n export RANK=$SLURM_PROCID\n ./a $A'"),
    ("4", "1", "torchrun --standalone --nproc_per_node=4 train.py --x $A"),
    ("4", "1", "srun torchrun --nnodes=1 --nproc-per-node=gpu -m pkg.train"),
    ("4", "4", "srun apptainer exec --nv --bind /a:/b \"$HOME/x.sif\" python train.py '*'"),
    ("2", "2", "srun --container-image=a.sqsh --container-mounts=/a:/b python train.py"),
]  # fmt: skip


@st.composite
def tidy_scripts(draw: st.DrawFn) -> str:
    gpus, tasks, launch = draw(st.sampled_from(LAUNCHES))
    head = ["#!/bin/bash", f"#SBATCH --ntasks-per-node={tasks}", f"#SBATCH --gres=gpu:{gpus}"]
    head += draw(st.sampled_from([[], ["#SBATCH -c 4"]]))
    head += draw(st.lists(st.sampled_from(LINES[6:30]), max_size=3))
    body = draw(st.lists(st.sampled_from(SETUPS), max_size=4, unique=True))
    body += draw(st.lists(st.sampled_from(EXPORTS), max_size=4, unique=True))
    body += draw(st.lists(st.sampled_from(COMMANDS), max_size=3, unique=True))
    return "\n".join([*head, *body, launch, *draw(st.sampled_from([[], ["# the end"]])), ""])


@settings(max_examples=examples(600))
@given(tidy_scripts())
def test_tidy_scripts(text: str) -> None:
    check_import(text)


def test_tidy_scripts_have_keys_for_everything() -> None:
    """All but those of which pyxis' container and an environment both bring a Python."""
    kept = []
    for gpus, tasks, launch in LAUNCHES:
        for setup in SETUPS:
            text = (
                f"#!/bin/bash\n#SBATCH -c4 --ntasks-per-node={tasks} --gres=gpu:{gpus}\n{setup}\n"
            )
            job = import_script(f"{text}export A=1\n{launch}\n", name="a").text
            if "script" in data_of(job):
                kept.append((setup, launch))
    assert [launch.split("=")[0] for _, launch in kept] == ["srun --container-image"] * 3
