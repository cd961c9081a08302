"""What the rules about conda, the shell, devices and signals find, in many dresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurmgen.lint import engine, registry
from slurmgen.lint.job import load
from tests.lint.asking import ALONE, ARRAY, ONE, TASKS, WHOLE, found, in_python, severities

if TYPE_CHECKING:
    from pathlib import Path

RUN = "srun python train.py\n"
LOGIN = ALONE.replace("#!/bin/bash", "#!/bin/bash -l")
STRICT = ALONE.replace("#!/bin/bash", "#!/bin/bash -eu")


# --- conda -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{ALONE}conda activate x\n{RUN}", [5]),
        (f"{ALONE}mamba activate x\n{RUN}", [5]),
        (f"{ALONE}micromamba activate x\n{RUN}", [5]),
        (f"{ALONE}module load cuda/12.1\nconda activate x\n{RUN}", [6]),
        (f"{ALONE}conda init bash\nconda activate x\n{RUN}", [6]),
        (f"{ALONE}module load miniconda3\nconda init\nconda activate x\n{RUN}", [7]),
        (f"{ALONE}export PATH=$HOME/miniconda3/bin:$PATH\nconda activate x\n{RUN}", [6]),
        (f"{ALONE}~/miniconda3/bin/conda activate x\n{RUN}", [5]),
        (f"{ALONE}source venv/bin/activate\nconda activate x\n{RUN}", [6]),
        (f"{ALONE}. /etc/profile.d/modules.sh\nconda activate x\n{RUN}", [6]),
        (f"{ALONE}source ~/.bashrc\nsrun bash -c 'conda activate x; python a.py'\n", [6]),
        (f"{ALONE}source ~/.bashrc\nconda activate x\n{RUN}", []),
        (f"{ALONE}source ~/miniconda3/etc/profile.d/conda.sh\nconda activate x\n{RUN}", []),
        (f"{ALONE}. ~/miniconda3/bin/activate\nconda activate x\n{RUN}", []),
        (f'{ALONE}eval "$(conda shell.bash hook)"\nconda activate x\n{RUN}', []),
        (f'{ALONE}eval "$(micromamba shell hook -s bash)"\nmicromamba activate x\n{RUN}', []),
        (f"{ALONE}module load anaconda3/2023\nconda activate x\n{RUN}", []),
        (f"{ALONE}ml Miniforge3\nconda activate x\n{RUN}", []),
        (f"{ALONE}source activate x\n{RUN}", []),
        (f"{ALONE}conda run -n x python train.py\n", []),
        (f"{LOGIN}conda activate x\n{RUN}", []),
        (f"{ALONE}source setup_env.sh\nconda activate x\n{RUN}", []),
        (f"{ALONE}conda activate x || source activate x\n{RUN}", []),
        (f"{ALONE}srun bash -lc 'conda activate x; python a.py'\n", []),
        (
            f"{ALONE}srun bash -c 'source /c/conda.sh; conda activate x; python a'\n",
            [],
        ),
    ],
)
def test_conda_without_its_function(text: str, lines: list[int]) -> None:
    assert found("conda_not_initialised", text) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{ALONE}set -euo pipefail\nconda activate x\n", [6]),
        (f"{ALONE}set -o nounset\nsource activate x\n", [6]),
        (f"{ALONE}set -u\nsource /opt/conda/bin/activate\n", [6]),
        (f"{ALONE}set -u\nsource ~/tools/bin/activate myenv\n", [6]),
        (f"{ALONE}set -u\nmamba activate x\nconda deactivate\n", [6]),
        (f"{STRICT}conda activate x\n", [5]),
        (f"{ALONE}srun bash -uc 'source activate x; python a.py'\n", [5]),
        (f"{ALONE}set -eo pipefail\nconda activate x\nset -u\n", []),
        (f"{ALONE}set -u\nset +u\nconda activate x\nset -u\n", []),
        (f"{ALONE}set -u\nsource venv/bin/activate\n", []),
        (f"{ALONE}set -u\nsource ~/miniconda3/etc/profile.d/conda.sh\n", []),
        (f"{ALONE}set -u\nconda run -n x python a.py\n", []),
    ],
)
def test_conda_under_nounset(text: str, lines: list[int]) -> None:
    assert found("nounset_conda", text) == lines


HOOK = "source $(conda info --base)/etc/profile.d/conda.sh\nconda activate x\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{ALONE}module load miniforge3\n{HOOK}srun --export=ALL python a.py\n", [7]),
        (f"{ALONE}#SBATCH --export=ALL\nml anaconda\n{HOOK}srun python a.py\n", [8]),
        (f"{ALONE}export LD_LIBRARY_PATH=$CONDA_PREFIX/lib\nsrun python a.py\n", [5]),
        (f"{ALONE}source $VIRTUAL_ENV/bin/activate\nsrun python a.py\n", [5]),
        (f"{ALONE}module load miniforge3\n{HOOK}srun python a.py\n", []),
        (f"{ALONE}#SBATCH --export=NONE\nml anaconda\n{HOOK}srun --export=ALL python a.py\n", []),
        (f"{ALONE}conda deactivate\nml anaconda\n{HOOK}srun --export=ALL python a.py\n", []),
        (f"{ALONE}{HOOK}export L=$CONDA_PREFIX/lib\nsrun --export=ALL python a.py\n", []),
        (f"{ALONE}echo $CONDA_PREFIX\nsrun python a.py\n", []),
    ],
)
def test_what_the_submitter_had_active(text: str, lines: list[int]) -> None:
    assert found("inherited_env", text) == lines


# --- the shell -------------------------------------------------------------------------------

SH = ALONE.replace("#!/bin/bash", "#!/bin/sh")


@pytest.mark.parametrize(
    "line",
    [
        "source venv/bin/activate",
        "a=(1 2)",
        "a+=' x'",
        "if [[ -n $x ]]; then :; fi",
        '[ "$x" == y ] && :',
        "for i in {1..4}; do :; done",
        "for ((i = 0; i < 4; i++)); do :; done",
        "((i++))",
        "function f { :; }",
        "cat <<< x",
        "diff <(ls) x",
        "python a.py &> log",
        "python a.py |& cat",
        "echo ${x//a/b}",
        "echo ${x:0:3}",
        "echo ${x^^}",
        "echo ${!x}",
        "set -euo pipefail",
        "set -o pipefail",
        "export MASTER_PORT=$((10000 + RANDOM % 1000))",
        "echo $RANDOM",
        "declare -A m",
        "pushd x",
        "mapfile -t a < x",
        "read -ra a < x",
        "trap 'exit 1' ERR",
        "echo ${PIPESTATUS[0]}",
        "let i=1",
        "shopt -s nullglob",
        "export -f f",
        "echo $SECONDS",
    ],
)
def test_bash_under_sh(line: str) -> None:
    assert found("sh_shebang_bashism", f"{SH}{line}\n{RUN}") == [5]
    assert found("sh_shebang_bashism", f"{ALONE}{line}\n{RUN}") == []


@pytest.mark.parametrize(
    "line",
    [
        ". venv/bin/activate",
        'if [ "$x" = y ]; then :; fi',
        "for i in 1 2 3; do :; done",
        "i=$((i + 1))",
        "i=$((i += 1))",
        "f() { local a; a=1; }",
        "python a.py > log 2>&1",
        "echo ${x%.*} ${x##*/} ${x:-a/b} ${#x}",
        "set -eu",
        "trap 'rm -f x' EXIT",
        "case $x in a | b) : ;; esac",
        "awk '{ a[1] += $1 } END { if (a[1] == 2) print }' x",
        "export A=1 B=2",
        "bash -c 'a=(1 2); [[ -n $a ]]'",
        "cat <<EOF\na=(1 2) [[ x == y ]] {1..4}\nEOF",
    ],
)
def test_what_every_shell_knows(line: str) -> None:
    assert found("sh_shebang_bashism", f"{SH}{line}\n{RUN}") == []


def test_the_shebang_is_mended() -> None:
    rule = registry.find("sh-shebang-bashism")
    assert rule is not None
    text = f"{SH}a=(1 2)\n{RUN}"
    outcome = engine.check(load("job.sbatch", text), (rule,))
    (diagnostic,) = outcome.diagnostics
    (edit,) = diagnostic.edits
    assert text[: edit.start] + edit.text + text[edit.end :] == f"{ALONE}a=(1 2)\n{RUN}"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ('cd "$(dirname "$0")"\nsrun python train.py\n', [5]),
        ('DIR=$(dirname "$(readlink -f "$0")")\nsrun python $DIR/train.py\n', [5]),
        ("DIR=$(dirname $(realpath ${BASH_SOURCE[0]}))\ncd $DIR\n", [5]),
        ("DIR=${0%/*}\nsource $DIR/env.sh\n", [5]),
        ('DIR="${BASH_SOURCE[0]%/*}"\nsrun python "$DIR/a.py" > log\n', [5]),
        ('srun python "$(dirname "$0")/train.py"\n', [5]),
        ("export ROOT=$(cd $(dirname $0)/.. && pwd)\nsrun python train.py\n", [5]),
        ('S=$(readlink -f "$0")\ncd "$(dirname "$S")"\n', [5]),
        ('S=$(readlink -f "$0")\ncp "$S" out/\nsrun python train.py\n', []),
        ('cp "$(realpath "$0")" out/\nsrun python train.py\n', []),
        ('echo "usage: $0 NAME"\nsrun python train.py\n', []),
        ('sed -n 5p "$0"\ncat $0\nsbatch "$0"\ncp "$0" out/\n', []),
        ('DIR=$(dirname "$0")\necho "$DIR"\nsrun python train.py\n', []),
        ('cd "${SLURM_SUBMIT_DIR:-$(dirname "$0")}"\nsrun python train.py\n', []),
        (
            'if [ -n "$SLURM_JOB_ID" ]; then\n  D=$PWD\nelse\n  D=$(dirname $0)\nfi\ncd $D\n',
            [],
        ),
        ('[[ "${BASH_SOURCE[0]}" == "$0" ]] && main\n', []),
        ("name=$(basename $0)\nsrun python train.py --name $name\n", []),
    ],
)
def test_the_script_s_own_folder(body: str, lines: list[int]) -> None:
    assert found("script_dir_spool", ALONE + body) == lines


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("srun python train.py \\ \n  --a 1\n", [5]),
        ("srun python train.py \\\t\n  --a 1\n", [5]),
        ("srun bash -c 'python train.py \\ \n  --a 1'\n", [5]),
        ("srun bash <<'EOF'\npython train.py \\ \n  --a 1\nEOF\n", [6]),
        ("srun python train.py \\\n  --a 1 \\\n\n  --b 2\n", [7]),
        ("srun python train.py \\\n  --a 1 \\\n  # --b 2 \\\n  --c 3\n", [7]),
        ("srun python train.py \\\n  # the data\n  data.yaml\n", [6]),
        ("srun python train.py \\\n  --a 1\n  --b 2\n", [6]),
        ("srun python train.py \\\\\n  --a 1\n", [5]),
        ("srun python train.py \\ # why\n  --a 1\n", [5]),
        ("srun python train.py  # why \\\n  --a 1\n", [5]),
        ('ARGS="\\\n --a 1 \\\n # --b 2 \\\n --c 3"\nsrun python a.py $ARGS\n', [7]),
        ("if true; then\n  srun python a.py \\\n    --a 1 \\\n    # --b\n    --c 2\nfi\n", [8]),
        ("srun torchrun --nnodes=2\n  train.py --a 1\n", [5]),
        ("srun python train.py \\\n  --a 1\n", []),
        ("srun python train.py --a 1 \\\n\necho done\n", []),
        ("srun python train.py --a 1 \\\n  # --b 2\n\necho done\n", []),
        ("srun python train.py --a 1 \\\n  # --b 2\necho done\n", []),
        ('args=(\n  --a 1\n  # --b 2\n  --c 3\n)\nsrun python a.py "${args[@]}"\n', []),
        ("cat <<EOF\na \\ \nb\nEOF\n", []),
        ("# a \\ \n# --b\nsrun python train.py\n", []),
        ("echo a\\ b\nsrun python train.py\n", []),
    ],
)
def test_continuations_that_break(body: str, lines: list[int]) -> None:
    assert found("broken_continuation", ALONE + body) == lines


def test_a_blank_behind_the_backslash_is_removed() -> None:
    rule = registry.find("broken-continuation")
    assert rule is not None
    text = f"{ALONE}srun python train.py \\  \n  --a 1\n"
    (diagnostic,) = engine.check(load("job.sbatch", text), (rule,)).diagnostics
    (edit,) = diagnostic.edits
    assert text[: edit.start] + text[edit.end :] == f"{ALONE}srun python train.py \\\n  --a 1\n"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("srun python train.py\necho done\n", [6]),
        ("srun python train.py;echo done\n", [5]),
        ("srun python train.py\ncp -r out ~/\nconda deactivate\n", [7]),
        ("srun python train.py\nexit 0\n", [6]),
        ("srun python train.py\nrc=$?\necho $rc\n", [7]),
        ("srun python train.py | tee log\n", [5]),
        ("srun python train.py 2>&1 |\n  tee log\n", [6]),
        ("set -e\nsrun python train.py | tee log\n", [6]),
        ("set -o pipefail\nsrun python train.py | tee log\necho done\n", [7]),
        ("srun python train.py || true\n", [5]),
        ("srun python train.py || echo failed\n", [5]),
        ("set -e\nsrun python train.py || :\necho done\n", [6]),
        ("srun bash -c 'python train.py; echo done'\n", [5]),
        ("srun bash -c 'python train.py | tee log'\n", [5]),
        ("srun ./solver\ndate\n", [6]),
        ("main() {\n  python train.py\n  echo done\n}\nmain\n", [7]),
        ("for s in 1 2; do\n  python train.py $s\n  echo $s\ndone\n", [7]),
        ("python train.py\nif [ $? -eq 0 ]; then\n  echo good\nelse\n  echo bad\nfi\n", [9]),
        ("if [ -f x ]; then\n  python train.py\nelse\n  exit 1\nfi\necho done\n", [10]),
        ("srun python train.py\n", []),
        ("set -e\nsrun python train.py\necho done\n", []),
        ("set -eo pipefail\nsrun python train.py | tee log\necho done\n", []),
        ("srun python train.py\nexit $?\n", []),
        ("srun python train.py\nrc=$?\necho $rc\nexit $rc\n", []),
        ("srun python train.py 2>&1 | tee log\nexit ${PIPESTATUS[0]}\n", []),
        ("srun python train.py > >(tee log) 2>&1\n", []),
        ("srun python train.py && echo done\n", []),
        ("srun python train.py || exit 1\necho done\n", []),
        ("srun python train.py || { echo failed; exit 1; }\necho done\n", []),
        ("srun python train.py || rc=$?\necho done\nexit ${rc:-0}\n", []),
        ("srun python train.py || die 'it failed'\necho done\n", []),
        ("if ! srun python train.py; then\n  exit 1\nfi\necho done\n", []),
        ("srun python train.py\nif [ $? -ne 0 ]; then\n  exit 1\nfi\necho done\n", []),
        ("if [ -f x ]; then\n  python train.py\nelse\n  echo no\nfi\n", []),
        ("srun python train.py\npython evaluate.py\n", []),
        ("srun python train.py &\nwait\n", []),
        ("trap 'echo over' EXIT\nsrun python train.py\n", []),
        ("cleanup() { rm -f x; }\ntrap cleanup EXIT\nsrun python train.py\n", []),
        ("srun python train.py\nscontrol requeue $SLURM_JOB_ID\n", []),
        ("srun bash -c 'set -e; python train.py; echo done'\n", []),
        ("srun hostname\necho done\n", []),
        ("srun python train.py\nrc=$?\necho\n[ $rc -eq 0 ]\n", []),
    ],
)
def test_statuses_that_are_lost(body: str, lines: list[int]) -> None:
    assert found("exit_status_masked", ALONE + body) == lines


def test_errexit_in_the_shebang() -> None:
    text = f"{ALONE}srun python train.py\necho done\n"
    assert found("exit_status_masked", text.replace("/bash", "/bash -e", 1)) == []


# --- devices ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{ONE}export CUDA_VISIBLE_DEVICES=0,1\npython train.py\n", [5]),
        (f"{ONE}CUDA_VISIBLE_DEVICES=0 python train.py\n", [5]),
        (f'{ONE}export CUDA_VISIBLE_DEVICES="0, 1"\npython train.py\n', [5]),
        (
            f"{ONE}CUDA_VISIBLE_DEVICES=0 python a.py &\nCUDA_VISIBLE_DEVICES=1 ./b &\nwait\n",
            [5],
        ),
        (f"{ONE}for i in 0 1; do\n  CUDA_VISIBLE_DEVICES=$i python a.py &\ndone\nwait\n", [6]),
        (f"{ONE}for i in {{0..1}}; do\n  CUDA_VISIBLE_DEVICES=$i python a.py &\ndone\nwait\n", [6]),
        (f"{ONE}env CUDA_VISIBLE_DEVICES=1 python train.py\n", [5]),
        (f"{ARRAY}export CUDA_VISIBLE_DEVICES=$((SLURM_ARRAY_TASK_ID % 4))\npython a.py\n", [5]),
        (f"{ONE}export CUDA_VISIBLE_DEVICES=$(seq -s, 0 1)\npython a.py\n", [5]),
        (f"{ONE}accelerate launch --gpu_ids 0,1 --num_processes 2 a.py\n", [5]),
        (f"{ONE}deepspeed --include localhost:0,1 train.py\n", [5]),
        (f"{TASKS}srun --export=ALL,CUDA_VISIBLE_DEVICES=0,1 python a.py\n", [5]),
        (
            f"{TASKS}srun --gpus-per-task=1 bash -c 'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID ./a'\n",
            [5],
        ),
        (f"{ONE}export CUDA_VISIBLE_DEVICES=\npython preprocess.py\n", []),
        (f"{ONE}CUDA_VISIBLE_DEVICES=-1 python preprocess.py\n", []),
        (f"{ONE}export CUDA_VISIBLE_DEVICES=${{CUDA_VISIBLE_DEVICES%%,*}}\npython a.py\n", []),
        (f"{ONE}export CUDA_VISIBLE_DEVICES=$SLURM_JOB_GPUS\npython a.py\n", []),
        (f"{TASKS}srun bash -c 'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID python a.py'\n", []),
        (
            (
                f"{ONE}for g in ${{CUDA_VISIBLE_DEVICES//,/ }}; do\n  CUDA_VISIBLE_DEVICES=$g a &\n"
                "done\nwait\n"
            ),
            [],
        ),
        (f"{WHOLE}export CUDA_VISIBLE_DEVICES=0,1,2,3\n{RUN}", []),
        (f"{WHOLE}for i in 0 1; do\n  CUDA_VISIBLE_DEVICES=$i python a.py &\ndone\nwait\n", []),
        (f"{ONE}echo $CUDA_VISIBLE_DEVICES\npython a.py\n", []),
    ],
)
def test_devices_by_hand(text: str, lines: list[int]) -> None:
    assert found("cuda_visible_hardcoded", text) == lines


def test_srun_sets_the_devices_anew() -> None:
    line = "export CUDA_VISIBLE_DEVICES=0,1\n"
    # Two GPUs are 0 and 1 where devices are confined.
    assert severities("cuda_visible_hardcoded", f"{ONE}{line}python a.py\n") == ["warning"]
    other = line.replace("0,1", "1,2")
    assert severities("cuda_visible_hardcoded", f"{ONE}{other}python a.py\n") == ["error"]
    assert severities("cuda_visible_hardcoded", f"{ONE}{line}srun python a.py\n") == ["warning"]
    inside = "srun bash -c 'export CUDA_VISIBLE_DEVICES=0; python a.py'\n"
    assert severities("cuda_visible_hardcoded", ONE + inside) == ["error"]


@pytest.mark.parametrize(
    ("text", "program", "lines"),
    [
        (ONE + RUN, 'os.environ["CUDA_VISIBLE_DEVICES"] = "0"', [2]),
        (ONE + RUN, 'os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"', [2]),
        (ONE + RUN, 'os.environ.update({"CUDA_VISIBLE_DEVICES": "1"})', [2]),
        (ONE + RUN, 'os.environ["CUDA_VISIBLE_DEVICES"] = ""', []),
        (ONE + RUN, 'os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")', []),
        (TASKS + RUN, 'os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["SLURM_LOCALID"]', []),
        (
            TASKS + "srun --gpus-per-task=1 python train.py\n",
            'os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["SLURM_LOCALID"]',
            [2],
        ),
    ],
)
def test_devices_by_hand_in_the_program(
    text: str, program: str, lines: list[int], tmp_path: Path
) -> None:
    given = in_python("cuda_visible_hardcoded", text, f"import os\n{program}\n", tmp_path)
    assert given == [f"train.py:{line}" for line in lines]


SET = "export HIP_VISIBLE_DEVICES"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{TASKS}srun --gpu-bind=single:1 bash -c '{SET}=$SLURM_LOCALID; python a.py'\n", [5]),
        (f"{TASKS}srun --gpus-per-task=1 bash -c '{SET}=$SLURM_LOCALID; python a.py'\n", [5]),
        (f"{TASKS}srun --gpu-bind=closest bash -c '{SET}=$SLURM_LOCALID; python a.py'\n", [5]),
        (
            (
                f"{TASKS}srun bash -c 'export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID; {SET}=0; "
                "python a.py'\n"
            ),
            [5],
        ),
        (f"{ONE}{SET}=$ROCR_VISIBLE_DEVICES\npython a.py\n", [5]),
        (f"{ONE}{SET}=0,1\npython a.py\n", [5]),
        (f"{TASKS}srun bash -c '{SET}=$SLURM_LOCALID; python a.py'\n", []),
        (f"{TASKS}srun bash -c 'export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID; python a.py'\n", []),
        (
            (
                f"{TASKS}srun --gpu-bind=single:1 bash -c 'unset ROCR_VISIBLE_DEVICES; {SET}=3; "
                "python a.py'\n"
            ),
            [],
        ),
        (f"{ONE}{SET}=\npython a.py\n", []),
    ],
)
def test_devices_filtered_twice(text: str, lines: list[int]) -> None:
    assert found("rocr_hip_both_set", text) == lines


# --- signals ---------------------------------------------------------------------------------

STEPS = ALONE.replace("--gres", "--signal=USR1@90 --gres")
BATCH = ALONE.replace("--gres", "--signal=B:USR1@90 --gres")
TRAP = "trap 'echo soon' USR1\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{STEPS}python train.py\n", [4]),
        (f"{STEPS}torchrun --standalone train.py\n", [4]),
        (f"{STEPS}exec python train.py\n", [4]),
        (f"{STEPS}srun nvidia-smi\npython train.py\n", [4]),
        (f"{STEPS}julia train.jl\n", [4]),
        (f"{STEPS}{TRAP}srun python train.py &\nwait\n", [4]),
        (f"{STEPS}trap 'echo' SIGUSR1\npython train.py &\nwait\n", [4]),
        (f"{BATCH}srun python train.py\n", [4]),
        (f"{BATCH}python train.py\n", [4]),
        (f"{BATCH}trap 'echo' TERM\nsrun python train.py &\nwait\n", [4]),
        (f"{BATCH}trap '' USR1\nsrun python train.py &\nwait\n", [4]),
        (f"{BATCH}{TRAP}srun python train.py\n", [6]),
        (f"{BATCH}{TRAP}python train.py\nexit $?\n", [6]),
        (f"{BATCH}f() {{ echo; }}\ntrap f SIGUSR1\nsrun python train.py\n", [7]),
        (f"{BATCH}trap 'echo' 10\nsrun python train.py\n", [6]),
        (f"{BATCH}srun python train.py\n{TRAP}", [6]),
        (f"{BATCH}srun python train.py &\n{TRAP}wait\n", []),
        (f"{STEPS}srun python train.py\n", []),
        (f"{STEPS}trap 'rm x' EXIT\nsrun python train.py\n", []),
        (f"{STEPS}mpirun python train.py\n", []),
        (f"{STEPS}bash run.sh\n", []),
        (f"{BATCH}{TRAP}srun python train.py &\nwait $!\n", []),
        (f"{BATCH}exec python train.py\n", []),
        (f"{BATCH}exec srun python train.py\n", []),
        (f"{BATCH}source lib.sh\nsrun python train.py &\nwait\n", []),
        (
            f"{BATCH}{TRAP}srun python train.py &\npid=$!\nwhile kill -0 $pid; do sleep 9; done\n",
            [],
        ),
        (f"{ALONE}python train.py\n", []),
    ],
)
def test_signals_that_reach_nobody(text: str, lines: list[int]) -> None:
    assert found("signal_not_delivered", text) == lines


def test_a_driver_that_calls_srun(tmp_path: Path) -> None:
    program = 'import subprocess\nsubprocess.run(["srun", "./x"])\n'
    text = f"{STEPS}python train.py\n"
    assert in_python("signal_not_delivered", text, program, tmp_path) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{ARRAY}srun python a.py\nscontrol requeue $SLURM_JOB_ID\n", [6]),
        (f"{ARRAY}srun python a.py || scontrol requeue ${{SLURM_ARRAY_JOB_ID}}\n", [5]),
        (f"{ARRAY}trap 'scontrol requeue $SLURM_JOB_ID' USR1\nsrun python a.py &\nwait\n", [5]),
        (
            f"{ARRAY}f() {{\n  scontrol requeue $SLURM_JOBID\n}}\ntrap f USR1\nsrun python a.py\n",
            [6],
        ),
        (f"{ARRAY}ID=$SLURM_ARRAY_JOB_ID\nscontrol requeue $ID\n", [6]),
        (f"{ARRAY}scontrol requeue ${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}\n", []),
        (f"{ALONE}scontrol requeue $SLURM_JOB_ID\n", []),
        (f"{ARRAY}scontrol show job $SLURM_JOB_ID\n", []),
    ],
)
def test_requeued_arrays(text: str, lines: list[int]) -> None:
    assert found("requeue_whole_array", text) == lines


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ('os.system("scontrol requeue " + os.environ["SLURM_JOB_ID"])', [2]),
        ("os.system(f\"scontrol requeue {os.environ['SLURM_ARRAY_JOB_ID']}\")", [2]),
        ('subprocess.run(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]])', [2]),
        (
            (
                "os.system(f\"scontrol requeue {os.environ['SLURM_ARRAY_JOB_ID']}_"
                "{os.environ['SLURM_ARRAY_TASK_ID']}\")"
            ),
            [],
        ),
    ],
)
def test_requeued_arrays_in_the_program(program: str, lines: list[int], tmp_path: Path) -> None:
    text = f"import os, subprocess\n{program}\n"
    given = in_python("requeue_whole_array", ARRAY + RUN, text, tmp_path)
    assert given == [f"train.py:{line}" for line in lines]
