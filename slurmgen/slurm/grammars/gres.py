"""GPUs (`[type:]count`) and other generic resources (`name[:type][:count]`)."""

from __future__ import annotations

import re
from typing import NamedTuple

from slurmgen.errors import Refusal

# A node has no thousand GPUs, and some types are called by a number: 3090, 1080.
_DIGITS_OF_A_TYPE = 3
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+")

_GRES = r"(?ai)(?!gres:)[a-z_][\w.+-]*(:(?!\d+[kmgtp]?(:|$))[\w.+-]+)?(:\d+[kmgtp]?)?"


class Gpus(NamedTuple):
    """GPUs: their type, None where none is given, and how many; as text `[type:]count`."""

    kind: str | None
    number: int

    def __str__(self) -> str:
        return str(self.number) if self.kind is None else f"{self.kind}:{self.number}"


NO_GPUS = Gpus(None, 0)


def parse_gpus(text: str) -> Gpus:
    """The GPUs of one node; a type alone is one GPU.

    Raises Refusal for `gpu:4`, which Slurm takes for a type called gpu, and for a type
    and a count in the wrong order.
    """
    parts = text.strip().split(":")
    kind, count = _split(parts, text)
    if count == 0:
        raise Refusal(
            f'"{text}" asks for no GPU',
            why="a job without GPUs says nothing about them",
            fix="remove gpus_per_node",
        )
    return Gpus(kind, count)


def _split(parts: list[str], text: str) -> tuple[str | None, int]:
    why = "GPUs are written [type:]count, such as 4 or a100:4"
    if parts[0].lower() in ("gpu", "gres/gpu", "gres"):
        rest = ":".join(part for part in parts if part.lower() not in ("gpu", "gres", "gres/gpu"))
        raise Refusal(
            f'"{text}" starts with {parts[0]}',
            why='Slurm would take "gpu" for the type of the GPUs and find none',
            fix=f"write {rest or '1'}",
        )
    if len(parts) == 1:
        if _is_count(parts[0]):
            if len(parts[0]) > _DIGITS_OF_A_TYPE:
                raise Refusal(
                    f'"{text[:20]}" is more GPUs than any node has',
                    why=why,
                    fix=f"write {parts[0][:20]}:1 if that is their type",
                )
            return None, int(parts[0])
        if _is_type(parts[0]) and not _is_count(parts[0][:-1]):
            return parts[0], 1
    elif len(parts) == 2:
        if _is_type(parts[0]) and _is_count(parts[1]) and len(parts[1]) <= _DIGITS_OF_A_TYPE:
            return parts[0], int(parts[1])
        if _is_count(parts[0]) and _is_type(parts[1]):
            raise Refusal(
                f'"{text}" has the count before the type',
                why=why,
                fix=f"write {parts[1]}:{parts[0]}",
            )
    equals = text.replace("=", ":")
    fix = f"write {equals}" if equals != text else "write, say, a100:4"
    raise Refusal(f'"{text}" is not a number of GPUs', why=why, fix=fix)


def parse_gres(text: str) -> str:
    """A list of resources other than GPUs, in the spelling that every version takes.

    Raises Refusal; GPUs belong into `gpus_per_node`.
    """
    items = []
    for item in text.split(","):
        plain = re.sub("^gres[/:]", "", item.strip(), flags=re.IGNORECASE).replace("=", ":")
        if plain.split(":")[0].lower() == "gpu":
            raise Refusal(
                f'"{item.strip()}" is a GPU',
                why="how GPUs are asked for differs from cluster to cluster",
                fix=f"write gpus_per_node: {plain.partition(':')[2] or '1'}",
            )
        if plain.lower() in ("none", "help"):
            raise Refusal(
                f'"{item.strip()}" is no resource',
                why="up to 20.11 Slurm refuses none, and help prints a list",
                fix="remove gres",
            )
        if not re.fullmatch(_GRES, item.strip()):
            raise Refusal(
                f'"{item}" is not a generic resource',
                why="it is name[:type][:count]; name=count and gres/name need Slurm 24.05",
                fix=f"write {plain}" if re.fullmatch(_GRES, plain) else "write, say, nvme:1",
            )
        items.append(item.strip())
    names = [re.sub(r":\d+[kmgtp]?$", "", item, flags=re.IGNORECASE) for item in items]
    for name in names:
        if names.count(name) > 1:
            raise Refusal(
                f'"{text}" names {name} twice',
                why="Slurm does not add them up",
                fix=f"write {name} once, with the whole count",
            )
    return ",".join(items)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_type(text: str) -> bool:
    """A name that starts with a letter or digit; of digits alone, too long for a count."""
    if not _is_word(text) or not text[0].isalnum() or re.fullmatch(r"\d+\.\d*", text):
        return False
    return not _is_count(text) or len(text) >= _DIGITS_OF_A_TYPE


def _is_word(text: str) -> bool:
    return text[:1].isalnum() and _WORD.issuperset(text)
