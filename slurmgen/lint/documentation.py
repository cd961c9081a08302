"""The documentation of a rule, which is the docstring of its module: read, shown, as a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.lint import other_codes, registry

if TYPE_CHECKING:
    from slurmgen.lint.registry import Rule

HEADINGS = ("What it does", "Why is this bad", "Example", "Use instead", "References")
ALL = ("all", "list")

# The first digits of the codes.
FAMILIES = {
    "SG0": "slurmgen itself",
    "SG1": "Directives",
    "SG2": "What is asked for",
    "SG3": "The launch",
    "SG4": "Ranks, address and port",
    "SG5": "Shell and environment",
    "SG6": "Python programs",
}


class Page(NamedTuple):
    """summary: the first sentence, without its full stop. sections: text by heading, in order."""

    summary: str
    sections: dict[str, str]

    def files(self, heading: str) -> dict[str, str]:
        """The files of a section: blocks whose fence names one (```` ```bash job.sbatch ````)."""
        return dict(_FILE.findall(self.sections.get(heading, "")))


_FILE = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^```\w*(?: (\S+))?$")


def read(rule: Rule) -> Page:
    """The docstring by its headings."""
    summary, *sections = re.split(r"^## (.+)\n", rule.documentation, flags=re.MULTILINE)
    texts = (text.strip("\n") + "\n" for text in sections[1::2])
    return Page(
        " ".join(summary.split()).removesuffix("."), dict(zip(sections[::2], texts, strict=True))
    )


def explain(name: str) -> str:
    """The documentation of a rule or another code as plain text, or for "all" a table of them.

    Raises UsageError for a name that is none of theirs.
    """
    if name in ALL:
        return table()
    rule = registry.find(name)
    code = other_codes.find(name)
    if code is not None:
        return other_codes.explain(code)
    if rule is None:
        raise registry.unknown(name, "--explain")
    page = read(rule)
    parts = [f"{rule.name} ({rule.code}, {rule.severity})\n\n{page.summary}.\n"]
    parts += [f"{condition}\n" for condition in _conditions(rule)]
    parts += [f"{heading}\n{_plain(text)}" for heading, text in page.sections.items()]
    return "\n".join(parts)


def table() -> str:
    """A line per code: code, name, severity and what it finds."""
    rows = [(c.code, c.name, c.severity, c.summary) for c in other_codes.CODES]
    rows += [(r.code, r.name, r.severity, read(r).summary) for r in registry.rules()]
    width = max(len(name) for _, name, _, _ in rows)
    return "".join(f"{code}  {name:{width}}  {sev:7}  {text}\n" for code, name, sev, text in rows)


def _conditions(rule: Rule) -> list[str]:
    """When it is asked at all, a sentence each."""
    found = []
    if rule.since and rule.until:
        found.append(f"Holds on Slurm {rule.since} and newer, before {rule.until}.")
    elif rule.since:
        found.append(f"Holds on Slurm {rule.since} and newer.")
    elif rule.until:
        found.append(f"Holds on Slurm before {rule.until}.")
    if rule.version_needed:
        found.append("Silent where Slurm's version is not known (`--slurm`, or a profile's).")
    if rule.needs:
        found.append(f"Needs {rule.needs}.")
    return found


def _plain(text: str) -> str:
    """Markdown as it is read in a terminal: blocks are indented and headed by their file."""
    lines = []
    inside = False
    for line in text.removesuffix("\n").split("\n"):
        fence = _FENCE.match(line)
        if fence:
            inside = not inside
            if inside and fence[1]:
                lines.append(f"    # {fence[1]}")
        else:
            lines.append(f"    {line}" if inside and line else line)
    return "\n".join(lines).translate(_SHOWN) + "\n"


def page(rule: Rule) -> str:
    """docs/rules/NAME.md."""
    found = read(rule)
    parts = [f"# {rule.name} ({rule.code})\n\n{found.summary}.\n"]
    parts.append("\n".join([f"Severity: {rule.severity}.", *_conditions(rule)]) + "\n")
    parts += [f"## {heading}\n\n{text}" for heading, text in found.sections.items()]
    return "\n".join(parts).translate(_SHOWN)


# Characters that an example is about, and that nobody would see.
_SHOWN = str.maketrans({"\r": "␍", "\0": "␀"})


def index() -> str:
    """docs/rules/README.md."""
    parts = [_PREFACE]
    for prefix, title in FAMILIES.items():
        family = [rule for rule in registry.rules() if rule.code.startswith(prefix)]
        if family:
            rows = "\n".join(map(_row, family))
            parts.append(
                f"## {title}\n\n| code | rule | severity | finds |\n|---|---|---|---|\n{rows}\n"
            )
    others = "\n".join(
        f"| {code.code} | {code.name} | {code.severity} | {code.summary} |"
        for code in other_codes.CODES
    )
    parts.append(f"{_BEYOND}\n| code | name | severity | says |\n|---|---|---|---|\n{others}\n")
    return "\n".join(parts)


def _row(rule: Rule) -> str:
    summary = read(rule).summary.replace("|", "\\|")
    return f"| {rule.code} | [{rule.name}]({rule.name}.md) | {rule.severity} | {summary} |"


_BEYOND = """\
## No rules

What is said of job files, templates and, by `slurmgen check`, of the cluster. It can't be
suppressed; `slurmgen lint --explain CODE` says more.
"""

_PREFACE = """\
# Rules

What `slurmgen lint` looks for. Written by `make docs` from the modules in `slurmgen/lint/rules/`;
`slurmgen lint --explain RULE` prints the same in the terminal.

An *error* fails, hangs or wastes its GPUs for sure; a *warning* depends on what a script does not
say. `--select` and `--ignore` take names, codes and the beginnings of codes (`SG1`).

## Suppressing a finding

```bash
srun python train.py   # slurmgen: ignore[srun-missing] the reason why it is right here
# slurmgen: ignore[SG301, SG408] alone on a line it is for the next one
srun python train.py
```

`# slurmgen: ignore-file[RULE] reason`, among the comments before the first command, is for the
whole file. The same comments work in the Python programs that a script starts. A comment that
suppresses nothing, or gives no reason, is itself a finding (unused-suppression).
"""
