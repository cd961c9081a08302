"""The short way into `render` takes exactly what Typer would take, and leaves it the rest."""

from __future__ import annotations

import pytest

from slurmgen.main import plain_render


@pytest.mark.parametrize(
    ("line", "found", "overrides"),
    [
        ("render job.yaml", {"job": "job.yaml"}, []),
        ("render -", {"job": "-"}, []),
        ("render -c lumi job.yaml", {"job": "job.yaml", "cluster": "lumi"}, []),
        ("render job.yaml --cluster=lumi", {"job": "job.yaml", "cluster": "lumi"}, []),
        ("render job.yaml -o out --set a=1 --set b=-1", {"job": "job.yaml", "output": "out"},
         ["a=1", "b=-1"]),
        ("render --check job.sbatch job.yaml", {"job": "job.yaml", "check": "job.sbatch"}, []),
    ],
)  # fmt: skip
def test_a_plain_render(line: str, found: dict[str, str], overrides: list[str]) -> None:
    assert plain_render(line.split()) == (found, overrides)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "plan job.yaml",
        "render",
        "render --help",
        "render a.yaml b.yaml",
        "render job.yaml -o",
        "render job.yaml -o --check",
        "render job.yaml -o=x",
        "render job.yaml --outpt x",
        "render job.yaml -- x",
        "render job.yaml --cluster a --cluster b",
    ],
)
def test_what_is_left_to_typer(line: str) -> None:
    assert plain_render(line.split()) is None
