"""Where a command stands, and what stands around what it starts."""

from __future__ import annotations

import pytest

from slurmgen.reading.shell.evaluate import evaluate
from slurmgen.reading.shell.launch import Launch, launches
from slurmgen.reading.shell.text import ShellText


def named(text: str, *programs: str) -> list[Launch]:
    found = launches(evaluate(ShellText.whole(text)))
    return [launch for launch in found if launch.program in programs]


def test_what_goes_into_the_background_together() -> None:
    text = "(a; b) &\nc & d &\ne\nfor i in 1 2; do a & done\n{ b; c | d; } &\nwait\n"
    jobs = [launch.command.context.job for launch in named(text, *"abcde")]
    assert jobs[0] == jobs[1] >= 0
    assert len(set(jobs[1:5])) == 4
    assert jobs[4] == -1
    assert jobs[5] >= 0
    assert len(set(jobs[6:])) == 1
    assert all(launch.command.background is (launch.program != "e") for launch in named(text, "e"))


def test_unset_is_a_command_like_another() -> None:
    (unset,) = named("A=1\nunset -v A B\na $A\n", "unset")
    assert [word.text for word in unset.words] == ["unset", "-v", "A", "B"]


def test_the_srun_around_an_srun() -> None:
    (inner,) = named("srun --overlap bash -c 'srun -n2 a'", "a")
    assert inner.step is not None
    assert inner.step.outer is not None
    assert set(inner.step.outer.options) == {"overlap"}


def test_what_mpirun_starts() -> None:
    (launch,) = named("mpirun -np 8 torchrun --nproc_per_node=4 train.py", "python")
    assert launch.mpirun is not None
    assert launch.launcher is not None
    assert (launch.mpirun.kind, launch.launcher.kind) == ("mpirun", "torchrun")


@pytest.mark.parametrize(
    ("text", "image", "opaque"),
    [
        ("apptainer exec --nv x.sif python train.py", "x.sif", False),
        ('apptainer exec "$SIF" python train.py', "$SIF", False),
        ("apptainer exec $SIF python train.py", "$SIF", False),
        ("apptainer exec $SIF bash -c 'python train.py'", "$SIF", False),
        ("apptainer exec $OPTIONS x.sif python train.py", "x.sif", True),
        ("I=$HOME/x.sif\napptainer exec --nv $I python train.py", "$HOME/x.sif", False),
        ("docker run --rm -v $PWD:/w img:1 python train.py", "img:1", False),
        ("srun --container-image=a+b.sqsh python train.py", "a+b.sqsh", False),
        ("shifter --image=img:1 python train.py", "img:1", False),
    ],
)
def test_the_image_of_a_container(text: str, image: str, opaque: bool) -> None:
    (launch,) = named(text, "python")
    assert launch.python == "train.py"
    assert launch.container is not None
    assert launch.container.image is not None
    assert (launch.container.image.text, launch.container.opaque) == (image, opaque)


def test_the_call_of_a_function_starts_nothing_itself() -> None:
    (launch,) = named('python() { apptainer exec x.sif python3 "$@"; }\npython a.py', "python")
    assert launch.wrappers == ("apptainer",)
    assert launch.python == "a.py"
