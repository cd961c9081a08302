"""Whatever a file holds, reading it neither raises nor takes long."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmgen.reading.programs import distributed, read
from slurmgen.reading.programs.sources import LARGEST_BYTES, MOST_MODULES
from tests.work import calls

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "text",
    [
        "print 'Python 2'",
        "x = 1\0",
        "(" * 10_000,
        "-" * 100_000 + "1",
        "x = " + "[" * 150 + "]" * 150,
        "x = " + "+".join(["1"] * 50_000),
        "x = a" + ".b" * 20_000,
        "x = f" + "()" * 20_000,
        "if a:\n" + "".join(" " * n + "if a:\n" for n in range(1, 99)) + " " * 99 + "pass",
        "def f():\n  x",
        "x = 'unfinished",
        "\ufeffx = 1",
        "x" * 1_000_000,
        "x = 9" + "9" * 10_000,
        "# coding: no-such-encoding\nx = 1",
        "# coding: rot13\nx = 1",
        "# coding: hex\nx = 1",
        "match x:\n  case [a, *b] if a: pass\n  case {'k': v, **rest}: pass",
        "try:\n  pass\nexcept* ValueError as error:\n  x = error",
        "def f[T](x: T) -> T: return x",
        "x = yield\nawait y\nreturn 3",
        "global x\ndel x\nx: int\n(y := 3)\n",
    ],
    ids=lambda text: text[:12],
)
def test_any_text(text: str, tmp_path: Path) -> None:
    program = read(tmp_path / "train.py", text)
    assert program.readable or (program.error and program.calls == ())
    assert list(distributed.devices(program)) == []


@pytest.mark.parametrize(
    ("data", "readable"),
    [
        (b"\xff\xfe\x00", False),
        (b"x = '\xe9'", False),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'", True),
        (b"\xef\xbb\xbfimport os\r\nx = 1\r\n", True),
        (b"import os\rx = 1\r", True),
        (b"", True),
        (b"#" * (LARGEST_BYTES + 1), False),
    ],
)
def test_any_bytes(data: bytes, readable: bool, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(data)
    assert read(path).readable is readable


def test_what_is_no_file(tmp_path: Path) -> None:
    assert not read(tmp_path / "missing.py").readable
    assert not read(tmp_path).readable
    os.mkfifo(tmp_path / "pipe.py")
    assert not read(tmp_path / "pipe.py").readable
    (tmp_path / "loop.py").symlink_to("loop.py")
    assert not read(tmp_path / "loop.py").readable
    assert not read("a\0b.py").readable


def test_modules_that_import_each_other(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import train, a\nfrom b import x\nprint(x, a.y)")
    (tmp_path / "a.py").write_text("from b import x as y\nimport train")
    (tmp_path / "b.py").write_text("from a import y as x\nfrom b import *")
    program = read(tmp_path / "train.py")
    assert set(program.modules) == {"a", "b"}


def test_modules_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import broken, folder, gone\nfrom ....far import x")
    (tmp_path / "broken.py").write_text("def")
    (tmp_path / "folder").mkdir()
    program = read(tmp_path / "train.py")
    assert program.readable
    assert program.modules == {}


def test_a_program_of_many_modules(tmp_path: Path) -> None:
    names = [f"module{n}" for n in range(MOST_MODULES + 10)]
    for name in names:
        (tmp_path / f"{name}.py").write_text("x = 1")
    (tmp_path / "train.py").write_text("\n".join(f"import {name}" for name in names))
    assert len(read(tmp_path / "train.py").modules) == MOST_MODULES


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "x = x + x\nprint(x)",
        "def f(x): return f(f(x))\nprint(f(f))",
        "a = b\nb = a\nprint(a, b)",
        "def f(x): return g(x)\ndef g(x): return f(x)\nprint(f(1))",
        "class A(A):\n  def f(self):\n    self.x = self.x\n    return self.f()\nprint(A().f().x)",
        "x0 = y\n" + "".join(f"x{n + 1} = x{n} + x{n}\n" for n in range(200)) + "print(x200)",
        "".join(f"def f{n}(a): return f{n + 1}(a), f{n + 1}(a)\n" for n in range(200)) + "f0(1)",
        "".join(f"if a{n}:\n  x = {n}\n" for n in range(500)) + "print(x)\n" * 500,
        "if a:\n  x = 0\n" + "".join(f"elif a{n}:\n  x = {n}\n" for n in range(500)) + "print(x)",
        "".join(f"if a{n}:\n  raise SystemExit\nf({n})\n" for n in range(2000)),
        "x = 1\n" * 20_000 + "print(x)\n" * 5_000,
        "".join(f"f(x{n})\n" for n in range(5_000)) + "def f(x): return x\n",
        "args.x = 1\n" * 3_000 + "print(args.x)\n" * 1_000,
    ],
    ids=range(13),
)
def test_nothing_grows_faster_than_its_text(text: str, tmp_path: Path) -> None:
    assert calls(lambda: read(tmp_path / "train.py", text)) < 10_000_000


@given(st.text(alphabet="abx01 \n:=.,()[]{}'\"%+-*/#@\t\\", max_size=80))
def test_any_small_text(text: str) -> None:
    read("train.py", text)
