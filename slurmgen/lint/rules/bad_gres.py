"""GPUs or other resources are asked for in a form that Slurm does not read.

## What it does

Finds values of `--gres` and `--gpus…` with type and count in the wrong order, the form that sinfo
prints (`gpu:4(S:0-1)`), `gpus` or a GPU's type in the place of `gpu`, `gpu:` in front of what
`--gpus` wants, capitals, and `name=count`, which Slurm reads from 24.05 on.

## Why is this bad

sbatch refuses the script: "Invalid generic resource (gres) specification". `--gpus=gpu:2` asks for
a type called gpu, which no node has. Names and types differ in upper and lower case.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --gres=gpu:4:a100
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --gres=gpu:a100:4
#SBATCH --time=2:00:00
hostname
```

## References

- sbatch(1), --gres, --gpus
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.diagnostics import ERROR, WARNING
from slurmgen.lint.facts.options import new_value, sound, value_place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "bad-gres"
CODE = "SG116"
SEVERITY = ERROR

_GPU_OPTIONS = ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket")
_COUNT = re.compile(r"\d+[KMGTP]?", re.IGNORECASE | re.ASCII)
_NAME = re.compile(r"[A-Za-z_][\w.+-]*", re.ASCII)
_TYPE = re.compile(r"[A-Za-z0-9_][\w.+-]*", re.ASCII)
_SINFO = re.compile(r"\((?:S|IDX|null)[^)]*\)?")
# Names of GPUs that people write where the resource's name, gpu, belongs.
_GPU_NAME = re.compile(
    r"(nvidia|tesla|quadro|geforce|rtx|gtx|titan|cuda|mi\d{2,3}|gh?[12]00|[abhvp]\d{2,3}|k[248]0"
    r"|t4|l4|l40s?|a\d{4})([_.-]?\w*)*",
    re.IGNORECASE,
)
_READS_EQUALS_SINCE = "24.05"
_INVALID = "sbatch says: Invalid generic resource (gres) specification"


class _Fault(NamedTuple):
    what: str
    why: str
    meant: str | None = None
    fix: str = ""
    severity: str = ERROR


def check(job: Job) -> Iterator[Finding]:
    known = job.profile.inventory.gres if job.profile is not None else None
    for directive in sound(job, "gres", *_GPU_OPTIONS):
        items = (directive.value or "").split(",")
        is_gres = directive.option == "gres"
        for index, item in enumerate(items):
            fault = _gres(item, job.slurm, known or ()) if is_gres else _gpus(item)
            if fault is None:
                continue
            mended = None
            if fault.meant is not None:
                mended = ",".join([*items[:index], fault.meant, *items[index + 1 :]])
            yield Finding(
                value_place(job, directive),
                f"{fault.what} (--{directive.option})",
                fault.why,
                fault.fix or f"write --{directive.option}={mended}",
                severity=fault.severity,
                edits=() if mended is None else new_value(job, directive, mended),
            )
            break


def _gres(item: str, slurm: str | None, known: tuple[str, ...]) -> _Fault | None:
    """What is wrong with `name[:type][:count]`."""
    if item.lower() in ("none", "help"):
        return None
    shown = f'"{item}"'
    if _SINFO.search(item):
        meant = _SINFO.sub("", item)
        return _Fault(f"{shown} is the form that sinfo prints", _INVALID, meant)
    body, is_new = item, False
    prefix = re.match(r"gres[/:]", body)
    if prefix is not None:
        body = body[prefix.end() :]
        is_new = prefix[0] == "gres/"
    if "=" in body:
        body, is_new = body.replace("=", ":"), True
    parts = body.split(":")
    name = parts[0]
    wrong = _parts(shown, parts)
    if wrong is not None:
        return wrong
    if name not in known:
        lowered = name.lower()
        if lowered in ("gpu", "gpus") and name != "gpu":
            rest = ":".join(parts[1:])
            what = f'{shown} names "{name}", and the resource is called gpu'
            return _Fault(what, _INVALID, f"gpu:{rest}" if rest else "gpu")
        if _GPU_NAME.fullmatch(name):
            meant = ":".join(["gpu", *parts])
            what = f'{shown} names "{name}", which is a type of GPU'
            return _Fault(what, _INVALID, fix=f"write --gres={meant}")
    if is_new and (slurm is None or slurm < _READS_EQUALS_SINCE):
        is_known = slurm is not None
        why = f"Slurm reads this form from {_READS_EQUALS_SINCE} on; before that sbatch refuses it"
        what = f"{shown} is written in the newer form"
        return _Fault(what, why, body, severity=ERROR if is_known else WARNING)
    return None


def _parts(shown: str, parts: list[str]) -> _Fault | None:
    """What is wrong with the parts between the colons, whatever they name."""
    if len(parts) == 3 and _COUNT.fullmatch(parts[1]) and not _COUNT.fullmatch(parts[2]):
        if _TYPE.fullmatch(parts[2]) and len(parts[1]) < 4:
            meant = f"{parts[0]}:{parts[2]}:{parts[1]}"
            return _Fault(f"{shown} has the count before the type", _INVALID, meant)
    is_fine = (
        len(parts) <= 3
        and _NAME.fullmatch(parts[0]) is not None
        and all(_TYPE.fullmatch(part) for part in parts[1:])
        and (len(parts) < 3 or _COUNT.fullmatch(parts[2]) is not None)
    )
    if is_fine:
        return None
    if len(parts) == 1 and _COUNT.fullmatch(parts[0]):
        what = f"{shown} is a number without a name"
        return _Fault(what, _INVALID, fix=f"write --gres=gpu:{parts[0]}")
    why = f"it is NAME[:TYPE][:COUNT]; {_INVALID}"
    return _Fault(f"{shown} is no resource", why, fix="write, say, --gres=gpu:a100:2")


def _gpus(item: str) -> _Fault | None:
    """What is wrong with `[type:]count`."""
    shown = f'"{item}"'
    parts = re.split("[:/]", item) if item.lower().startswith("gres") else item.split(":")
    plain = [part for part in parts if part.lower() not in ("gpu", "gpus", "gres")]
    if len(plain) < len(parts):
        rest = ":".join(plain) or "1"
        why = 'Slurm takes "gpu" for the type of the GPUs, and no node has such'
        meant = rest if _is_gpus(plain) or not plain else None
        return _Fault(f'{shown} starts with "{parts[0]}"', why, meant, "" if meant else "write 1")
    if _is_gpus(plain):
        return None
    if len(parts) == 2 and parts[0].isdecimal() and _TYPE.fullmatch(parts[1]):
        return _Fault(
            f"{shown} has the count before the type",
            "it is [TYPE:]COUNT, and sbatch refuses another order",
            f"{parts[1]}:{parts[0]}",
        )
    equals = item.replace("=", ":")
    meant = equals if equals != item and _is_gpus(equals.split(":")) else None
    if "=" in item and item.lower().startswith(("gpu=", "gpus=")):
        meant = item.partition("=")[2] if _is_gpus(item.partition("=")[2].split(":")) else None
    why = "it is [TYPE:]COUNT, and sbatch refuses anything else"
    fix = "" if meant is not None else "write, say, a100:4 or 4"
    return _Fault(f"{shown} is no number of GPUs", why, meant, fix)


def _is_gpus(parts: list[str]) -> bool:
    if len(parts) == 1:
        return _TYPE.fullmatch(parts[0]) is not None and not re.fullmatch(
            r"\d+(gpus?|x)", parts[0], re.IGNORECASE
        )
    return (
        len(parts) == 2
        and _TYPE.fullmatch(parts[0]) is not None
        and parts[1].isascii()
        and parts[1].isdigit()
    )
