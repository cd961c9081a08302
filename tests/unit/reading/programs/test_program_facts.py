"""What is read off a program: names, values, the environment, options, conditions, places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurmgen.reading.programs import alternatives, read, truth
from slurmgen.reading.programs.frameworks import frameworks
from slurmgen.reading.programs.processes import handlers, processes
from slurmgen.reading.programs.roles import device_roles, names_rank, roles
from slurmgen.reading.programs.torch_names import DATA_LOADER, DDP, INIT_PROCESS_GROUP

if TYPE_CHECKING:
    from pathlib import Path

    from slurmgen.reading.programs import Program, Value


def program(text: str) -> Program:
    found = read("train.py", text)
    assert found.readable, found.error
    return found


def shown(text: str) -> Value:
    """What the program passes to ``show()``."""
    call = next(program(text).called("show"))
    return call.args[0]


# --- names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\ntorch.nn.parallel.DistributedDataParallel(net)", DDP),
        ("from torch.nn.parallel import DistributedDataParallel as D\nD(net)", DDP),
        ("from torch import nn\nnn.parallel.DistributedDataParallel(net)", DDP),
        ("import torch.nn.parallel as p\nX = p.DistributedDataParallel\nX(net)", DDP),
        ("from torch.nn.parallel import *\nDistributedDataParallel(net)", DDP),
        ("import torch.distributed as dist\ndist.init_process_group()", INIT_PROCESS_GROUP),
        (
            "from torch.distributed.distributed_c10d import init_process_group as i\ni()",
            INIT_PROCESS_GROUP,
        ),
        ("from torch.utils.data.dataloader import DataLoader\nDataLoader(x)", DATA_LOADER),
        ("import lightning as L\nL.Trainer()", "lightning.Trainer"),
        ("import pytorch_lightning as pl\npl.Trainer()", "lightning.Trainer"),
        ("from lightning.pytorch import Trainer\nTrainer()", "lightning.Trainer"),
        ("def f():\n  import os\n  os.getpid()", "os.getpid"),
        ("try:\n  from a import b\nexcept ImportError:\n  b = None\nb()", "a.b"),
        ("class A:\n  def f(self): self.g()\n  def g(self): 3", "__main__.A.g"),
        ("class B:\n  def g(self): 3\nclass A(B):\n  def f(self): self.g()", "__main__.B.g"),
        ("class A:\n  def g(self): 3\na = A()\na.g()", "__main__.A.g"),
        ("print(1)", "print"),
        ("x.y()", ""),
    ],
)
def test_one_name_for_one_thing(text: str, name: str) -> None:
    assert program(text).calls[-1].name == name


# --- values -----------------------------------------------------------------------------

RANK = "import os\nrank = int(os.environ['RANK'])\n"


CLASS = RANK + "class A:\n def __init__(self, r=rank): self.r = r\n def f(self): show(self.r)\n"
SPAWN = "import torch.multiprocessing as mp\ndef f(i, x): show(%s)\nmp.spawn(f, (7,), 2)"
PROCESS = """
from multiprocessing import Process
def f(i): show(i)
for r in range(4):
    Process(target=f, args=(r,))
"""
OPTIONS = """
import argparse
p = argparse.ArgumentParser()
p.add_argument("-w", "--num-workers", dest="n")
p.add_argument("--epochs")
a, _ = p.parse_known_args()
b = p.parse_args()
show(%s)
"""
CLICK = """
import click
@click.command()
@click.option("--workers", default=4)
def main(workers): show(workers)
"""


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("import os\nshow(os.environ['A'])", "env", "A"),
        ("from os import environ as e\nshow(e.get('A', 1))", "env", "A"),
        ("import os\nenv = os.environ\nshow(env['A'])", "env", "A"),
        ("import os\nshow(int(os.getenv('A')))", "env", "A"),
        ("import os\nK = 'A'\nshow(os.environ[K])", "env", "A"),
        (RANK + "show(rank)", "env", "RANK"),
        (RANK + "def f(r): show(r)\nf(rank)", "env", "RANK"),
        (RANK + "def f(*, r): show(r)\nf(r=rank)", "env", "RANK"),
        (RANK + "def f(): return rank\nshow(f())", "env", "RANK"),
        (RANK + "def f(): return 1, rank\n_, r = f()\nshow(r)", "env", "RANK"),
        (RANK + "a, b = 1, rank\nshow(b)", "env", "RANK"),
        (CLASS + "A()", "env", "RANK"),
        (CLASS + "A(r=rank)", "env", "RANK"),
        (CLASS + "a = A()\nshow(a.r)", "env", "RANK"),
        (RANK + "class C: pass\nargs = C()\nargs.r = rank\nshow(args.r)", "env", "RANK"),
        (RANK + "f = lambda: rank\nshow(f())", "env", "RANK"),
        (RANK + "if (r := rank): show(r)", "env", "RANK"),
        ("def g():\n global r\n r = 3\ng()\nshow(r)", "constant", ""),
        (SPAWN % "i", "spawn", ""),
        (SPAWN % "x", "constant", ""),
        (PROCESS, "spawn", ""),
        (OPTIONS % "a.n", "option", "n"),
        (OPTIONS % "b.epochs", "option", "epochs"),
        (CLICK, "option", "workers"),
        ("def f(x=3): show(x)", "parameter", "x"),
        ("show(f'cuda:{x}')", "format", ""),
        ("show('cuda:%d' % x)", "format", ""),
        ("show('cuda:{}'.format(x))", "format", ""),
        ("show('cuda:' + str(x))", "format", ""),
        ("show(unheard_of)", "name", "unheard_of"),
        ("show({**a})", "unknown", ""),
    ],
)
def test_values_are_followed(text: str, kind: str, name: str) -> None:
    value = shown(text)
    assert (value.kind, value.name) == (kind, name)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("show(2 * 3 + 1)", 7),
        ("show(-1)", -1),
        ("show(7 // 2)", 3),
        ("show(7 % 0)", None),
        ("show(int('12'))", 12),
        ("A = 'x'\nshow(f'{A}y')", "xy"),
        ("x = 1\nx = 2\nshow(x)", 2),
        ("x = 1\nif a:\n  x = 2\n  show(x)", 2),
        ("x = 1\nif a:\n  x = 2\nelse:\n  show(x)", 1),
        ("x = 1\nx += 2\nshow(x)", 3),
        ("x = (4, 5)\nshow(x[1])", 5),
    ],
)
def test_constants_are_computed(text: str, literal: object) -> None:
    assert shown(text).literal == literal


def test_paths_are_kept_apart() -> None:
    value = shown(
        "import os\n"
        "if 'RANK' in os.environ:\n  r = int(os.environ['RANK'])\n"
        "elif 'SLURM_PROCID' in os.environ:\n  r = int(os.environ['SLURM_PROCID'])\n"
        "else:\n  r = 0\n"
        "show(r)"
    )

    def set_by_slurm(name: str) -> bool:
        return name == "SLURM_PROCID"

    assert [item.name for item in alternatives(value)] == ["RANK", "SLURM_PROCID", ""]
    assert [item.name for item in alternatives(value, set_by_slurm)] == ["SLURM_PROCID"]
    assert [item.literal for item in alternatives(value, lambda _: False)] == [0]


@pytest.mark.parametrize(
    ("test", "answer"),
    [
        ("'A' in os.environ", True),
        ("'B' not in os.environ", True),
        ("not ('A' in os.environ and 'B' in os.environ)", True),
        ("os.environ.get('B') is not None", False),
        ("os.environ.get('B')", False),
        ("int(os.environ.get('B', 1)) > 1", False),
        ("os.environ.get('A')", None),
        ("torch.cuda.is_available()", True),
        ("__name__ == '__main__'", True),
        ("1 < 2 and 'C' in os.environ", None),
        ("whatever", None),
    ],
)
def test_conditions_on_the_environment(test: str, answer: bool | None) -> None:
    value = shown(f"import os, torch\nshow({test})")
    assert truth(value, {"A": True, "B": False}.get) is answer


# --- roles ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("os.environ['LOCAL_RANK']", {"local_rank"}),
        ("int(os.environ.get('SLURM_LOCALID', 0))", {"local_rank", "constant"}),
        ("dist.get_rank()", {"rank"}),
        ("dist.get_rank() % torch.cuda.device_count()", {"wrapped"}),
        ("dist.get_rank() % 4", {"local_rank"}),
        ("int(os.environ['SLURM_NODEID']) * 4 + i", {"computed"}),
        ("os.environ['SLURM_NODEID']", {"node_rank"}),
        ("self.local_rank", {"local_rank"}),
        ("MPI.COMM_WORLD.Get_rank()", {"rank"}),
        ("3", {"constant"}),
        ("None", {"none"}),
        ("who.knows", {"unknown"}),
    ],
)
def test_what_a_number_means(expression: str, found: set[str]) -> None:
    text = f"import os, torch\nimport torch.distributed as dist\nshow({expression})"
    assert roles(shown(text)) == found


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("'cuda'", {"plain"}),
        ("'cuda:0'", {"constant"}),
        ("'cpu'", {"cpu"}),
        ("torch.device('cuda' if torch.cuda.is_available() else 'cpu')", {"plain"}),
        ("torch.device('cuda', int(os.environ['RANK']))", {"rank"}),
        ("torch.device(f'cuda:{int(os.environ[\"LOCAL_RANK\"])}')", {"local_rank"}),
        ("torch.device(type='cuda', index=0)", {"constant"}),
        ("'meta'", {"unknown"}),
        ("torch.float16", {"unknown"}),
    ],
)
def test_what_a_device_means(expression: str, found: set[str]) -> None:
    assert device_roles(shown(f"import os, torch\nshow({expression})")) == found


@pytest.mark.parametrize(
    ("test", "answer"),
    [
        ("dist.get_rank() == 0", True),
        ("not rank", True),
        ("is_main_process()", True),
        ("self.gpu_id == 0", True),
        ("int(os.environ['SLURM_PROCID']) == 0", True),
        ("trainer.is_global_zero or args.process_index == 0", True),
        ("epoch % 10 == 0", False),
        ("loss < best", False),
        ("args.save_model", False),
        ("torch.cuda.is_available()", False),
    ],
)
def test_which_tests_are_about_the_rank(test: str, answer: bool) -> None:
    text = f"import os, torch\nimport torch.distributed as dist\nshow({test})"
    assert names_rank(shown(text)) is answer


# --- facts ------------------------------------------------------------------------------


def test_the_environment() -> None:
    found = program(
        "import os\n"
        "a = int(os.environ['A'])\n"
        "b = os.environ.get('B', 2)\n"
        "if 'C' in os.environ: pass\n"
        "os.environ['D'] = '1'\n"
        "os.environ.setdefault('E', 'x')\n"
        "os.environ.update(F='y', **{'G': 'no'})\n"
        "os.environ.update({'H': 'z'})\n"
        "os.putenv('I', 'p')\n"
    )
    reads = [(r.name, r.how, r.is_int, r.place.line) for r in found.env_reads]
    assert reads == [
        ("A", "item", True, 2),
        ("B", "get", False, 3),
        ("C", "in", False, 4),
        ("E", "get", False, 6),
    ]
    writes = [(w.name, w.how, w.value.literal, w.place.line) for w in found.env_writes]
    assert ("D", "item", "1", 5) in writes
    assert ("E", "setdefault", "x", 6) in writes
    assert ("F", "update", "y", 7) in writes
    assert ("H", "update", "z", 8) in writes
    assert ("I", "putenv", "p", 9) in writes


def test_arguments_of_calls() -> None:
    call = next(
        program(
            "import torch.distributed as d\nd.init_process_group('nccl', 'tcp://h:1', rank=3)"
        ).called(INIT_PROCESS_GROUP)
    )
    assert call.text(1, "init_method") == "tcp://h:1"
    assert call.number(4, "rank") == 3
    assert call.argument(3, "world_size") is None
    assert not call.is_open


def test_a_dictionary_of_arguments() -> None:
    text = "from torch.utils.data import DataLoader\nkw = {'shuffle': True}\n"
    known = next(program(f"{text}DataLoader(x, **kw)").called(DATA_LOADER))
    assert known.keyword("shuffle") is not None
    assert not known.is_open
    changed = next(program(f"{text}kw.update(y)\nDataLoader(x, **kw)").called(DATA_LOADER))
    assert changed.is_open
    assert next(program("from a import f\nf(**kw)").called("a.f")).is_open


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("if rank == 0:\n  save()", True),
        ("if rank != 0:\n  x = 1\nelse:\n  save()", True),
        ("rank == 0 and save()", True),
        ("save() if not rank else None", True),
        ("def f():\n  if rank:\n    return\n  save()\nf()", True),
        ("for x in y:\n  if rank: continue\n  save()", True),
        ("def f(): save()\nif rank == 0: f()", True),
        ("def g(): save()\ndef f(): g()\nif rank == 0: f()", True),
        ("@rank_zero_only\ndef f(): save()\nf()", True),
        ("def f(): save()\nif rank == 0: f()\nf()", False),
        ("if rank == 0:\n  log()\nsave()", False),
        ("if epoch % 5 == 0:\n  save()", False),
        ("save()", False),
    ],
)
def test_who_makes_a_call(text: str, answer: bool) -> None:
    found = program(f"import torch.distributed as dist\nrank = dist.get_rank()\n{text}")
    assert found.by_rank(next(found.called("save"))) is answer


@pytest.mark.parametrize(
    ("handler", "names"),
    [
        ("signal.signal(signal.SIGUSR1, f)", ("SIGUSR1",)),
        ("signal.signal(12, f)", ("SIGUSR2",)),
        ("signal.signal(signal.Signals.SIGTERM, f)", ("SIGTERM",)),
        ("for s in (signal.SIGTERM, signal.SIGUSR1): signal.signal(s, f)", ("SIGTERM", "SIGUSR1")),
        ("signal.signal(getattr(signal, 'SIGUSR2'), f)", ("SIGUSR2",)),
        ("signal.signal(args.signal, f)", ()),
    ],
)
def test_signal_handlers(handler: str, names: tuple[str, ...]) -> None:
    [found] = handlers(program(f"import signal\n{handler}"))
    assert found.names == names


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("os.system('scontrol requeue ' + x)", "scontrol requeue {}"),
        ("subprocess.run(['srun', '-n', n])", "srun -n {}"),
        ("subprocess.check_output(f'squeue -j {j}', shell=True)", "squeue -j {}"),
        ("subprocess.Popen('sbatch a.sh'.split())", "sbatch a.sh"),
        ("subprocess.run(shlex.split('scontrol show'))", "scontrol show"),
        ("subprocess.call(args=['sinfo'])", "sinfo"),
    ],
)
def test_processes(call: str, text: str) -> None:
    found = processes(program(f"import os, shlex, subprocess\n{call}"))
    assert [item.text for item in found] == [text]


def test_frameworks() -> None:
    found = program("import deepspeed, transformers\nfrom lightning.pytorch import Trainer")
    assert frameworks(found) == {"deepspeed", "lightning"}
    found = program("from transformers import TrainingArguments\nTrainingArguments('x')")
    assert frameworks(found) == {"transformers"}


# --- local modules and places -----------------------------------------------------------


def test_local_modules_are_followed_one_level(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("from .dist import setup\n")
    (tmp_path / "lib" / "dist.py").write_text(
        "import os, far\ndef setup(x):\n    show(x)\n    return int(os.environ['RANK'])\n"
    )
    (tmp_path / "near.py").write_text("PORT = 29500\n")
    (tmp_path / "far.py").write_text("import os\nos.environ['FAR'] = '1'\n")
    (tmp_path / "train.py").write_text(
        "from lib import setup\nimport near\nfrom gone import x\n\nr = setup(near.PORT)\nprint(r)\n"
    )
    found = read(tmp_path / "train.py")
    assert set(found.modules) == {"lib", "lib.dist", "near"}
    assert found.missing == ("gone.x", "os", "far")[:1] or "gone.x" in found.missing
    assert next(found.called("show")).args[0].literal == 29500
    assert next(found.called("print")).args[0].name == "RANK"
    assert [w.name for w in found.env_writes] == []
    place = next(found.called("show")).place
    assert (place.path, place.line) == (str(tmp_path / "lib" / "dist.py"), 3)


def test_modules_beside_the_package(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "train.py").write_text("from pkg.util import f\nfrom . import other\n")
    (package / "util.py").write_text("def f(): pass\n")
    (package / "other.py").write_text("x = 1\n")
    assert {"pkg.util", "other"} <= set(read(package / "train.py").modules)


def test_columns_count_characters() -> None:
    [call] = program('x = "ä€😀"; f(\n  1)').calls
    assert (call.place.line, call.place.column, call.place.length) == (1, 12, 2)


def test_a_path_is_shown_as_given(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("f()")
    shown_as = f"{tmp_path}/../{tmp_path.name}/train.py"
    assert read(shown_as).path == shown_as


def test_what_can_run() -> None:
    found = program(
        "import os\nif 'RANK' in os.environ:\n  a()\nelse:\n  b()\nif maybe:\n  c()\nd()"
    )

    def unset(_: str) -> bool:
        return False

    names = [call.name for call in found.calls if found.is_reached(call, unset)]
    assert names == ["b", "c", "d"]
