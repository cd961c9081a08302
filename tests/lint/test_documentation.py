"""docs/rules is what the rules' docstrings say; `make docs` writes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slurmgen.errors import UsageError
from slurmgen.lint import documentation, other_codes, registry
from slurmgen.lint.registry import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "rules"

DOCSTRING = """Two things in
one sentence.

## What it does

Finds `it`.

## Example

```bash job.sbatch
#!/bin/bash

srun x
```

And:

```python src/train.py
import torch
```

```bash
srun x   # of no file
```
"""


def check(job: object) -> Iterator[object]:
    yield from ()


RULE = Rule("a-rule", "SG199", "error", check, documentation=DOCSTRING)  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", registry.rules(), ids=lambda rule: rule.name)
def test_the_page_of_a_rule_is_up_to_date(rule: Rule, golden: Callable[[Path, str], None]) -> None:
    golden(FOLDER / f"{rule.name}.md", documentation.page(rule))


def test_the_index_is_up_to_date(golden: Callable[[Path, str], None]) -> None:
    golden(FOLDER / "README.md", documentation.index())


def test_there_is_no_page_without_a_rule(update_golden: bool) -> None:
    names = {"README", *(rule.name for rule in registry.rules())}
    orphans = [path for path in FOLDER.glob("*.md") if path.stem not in names]
    if update_golden:
        for path in orphans:
            path.unlink()
    else:
        assert orphans == []


def test_a_docstring_by_its_headings() -> None:
    page = documentation.read(RULE)
    assert page.summary == "Two things in one sentence"
    assert list(page.sections) == ["What it does", "Example"]
    assert page.sections["What it does"] == "Finds `it`.\n"
    assert page.files("Example") == {
        "job.sbatch": "#!/bin/bash\n\nsrun x\n",
        "src/train.py": "import torch\n",
    }
    assert page.files("Use instead") == {}


def test_a_page_says_when_the_rule_is_asked() -> None:
    page = documentation.page(RULE._replace(since="22.05", until="23.11", needs="a profile"))
    assert page.startswith(
        "# a-rule (SG199)\n\nTwo things in one sentence.\n\n"
        "Severity: error.\nHolds on Slurm 22.05 and newer, before 23.11.\nNeeds a profile.\n"
    )


def test_explain_is_plain_text() -> None:
    for key in ("unused-suppression", "SG020", "sg020"):
        text = documentation.explain(key)
        assert text.startswith("unused-suppression (SG020, warning)\n\n")
        assert "```" not in text
        assert "##" not in text
        assert "\nExample\n    # job.sbatch\n    #!/bin/bash\n" in text


def test_explain_lists_the_rules() -> None:
    for key in documentation.ALL:
        lines = documentation.explain(key).splitlines()
        assert len(lines) == len(other_codes.CODES) + len(registry.rules())
        assert lines[0].split()[:3] == ["SG001", "yaml-syntax", "error"]
        assert lines[len(other_codes.CODES)].split()[:3] == [
            "SG020",
            "unused-suppression",
            "warning",
        ]


def test_every_code_in_the_sources_can_be_explained() -> None:
    """Whatever verb prints it, with the name that stands beside it there."""
    package = Path(documentation.__file__).parents[1]
    said: dict[str, set[str]] = {}
    for path in package.rglob("*.py"):
        for name, code in re.findall(r'"([a-z-]+)",\s+"(SG\d{3})"', path.read_text()):
            said.setdefault(code, set()).add(name)
    assert {code.code for code in other_codes.CODES} <= set(said)
    for code, names in said.items():
        for name in (code, *names):
            assert f" ({code}, " in documentation.explain(name).splitlines()[0]


def test_explain_of_an_unknown_rule_suggests_one() -> None:
    with pytest.raises(UsageError) as caught:
        documentation.explain("unused-supression")
    assert caught.value.fix == "write unused-suppression (SG020)"
