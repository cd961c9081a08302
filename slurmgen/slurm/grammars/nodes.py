"""Node counts and lists of host names."""

from __future__ import annotations

from slurmgen.errors import Refusal
from slurmgen.slurm.grammars.blanks import without_blanks

_HOST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
# More hosts than any cluster has, and few enough to expand.
_MAX_HOSTS = 65_536
# Of a number in a host name: far more than any has, and few enough for int().
_MAX_DIGITS = 18


def check_node_count(text: str) -> str:
    """A whole number of nodes, as text; raises Refusal for Slurm's other forms."""
    squeezed = text.strip()
    # How large it may be is the field's to say, and int() refuses very many digits.
    if squeezed.isascii() and squeezed.isdigit() and squeezed.strip("0"):
        return squeezed
    why = "the script says how many ranks there are, so the number of nodes must be fixed"
    if squeezed in ("0", "-1"):
        why = "Slurm accepts 0 and starts the job on one node"
    raise Refusal(f'"{text[:60]}" is not a number of nodes', why=why, fix="write, say, nodes: 2")


def expand_hostlist(text: str) -> list[str]:
    """The hosts of `n[1-3,7],login`; raises Refusal for a list no Slurm version reads.

    Zero padding follows the low end of a range, as in `scontrol show hostnames`.
    """
    hosts: list[str] = []
    for item in _split(text):
        hosts += _expand(item, text)
        if len(hosts) > _MAX_HOSTS:
            raise _too_many(text)
    return hosts


def _split(text: str) -> list[str]:
    """Items between the commas that stand outside brackets."""
    items, depth = [""], 0
    for character in text.strip():
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            raise _refusal(text, "its brackets don't match", "write, say, n[1-4]")
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    if depth:
        raise _refusal(text, "a bracket is not closed", "write, say, n[1-4]")
    return items


def _expand(item: str, text: str) -> list[str]:
    head, bracket, rest = item.partition("[")
    if not _HOST.issuperset(head):
        raise _refusal(text, "a host name is letters, digits, - and .", "write, say, n[1-4]")
    if not bracket:
        if not head:
            raise _refusal(text, "a name is empty", "remove the comma")
        return [head]
    inside, _, tail = rest.partition("]")
    if tail and "[" not in tail:
        raise _refusal(text, "Slurm up to 22.05 takes no suffix behind a bracket", "list the names")
    tails = _expand(tail, text) if tail else [""]
    numbers = _numbers(inside, text)
    if len(numbers) * len(tails) > _MAX_HOSTS:
        raise _too_many(text)
    return [head + number + after for number in numbers for after in tails]


def _numbers(inside: str, text: str) -> list[str]:
    numbers: list[str] = []
    for part in inside.split(","):
        low, dash, high = part.partition("-")
        high = high if dash else low
        if not (low.isascii() and low.isdigit() and high.isascii() and high.isdigit()):
            raise _refusal(text, f"[{part[:40]}] is no range of numbers", "write, say, n[1-4,7]")
        if max(len(low), len(high)) > _MAX_DIGITS:
            raise _refusal(
                text, f"no host's number has more than {_MAX_DIGITS} digits", "write, say, n[1-4]"
            )
        if int(high) < int(low):
            raise _refusal(text, f"the range {part} counts down", f"write {high}-{low}")
        if int(high) - int(low) >= _MAX_HOSTS:
            raise _too_many(text)
        numbers += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
        if len(numbers) > _MAX_HOSTS:
            raise _too_many(text)
    return numbers


def _too_many(text: str) -> Refusal:
    return _refusal(text, f"it names more than {_MAX_HOSTS} hosts", "name fewer")


def _refusal(text: str, why: str, fix: str) -> Refusal:
    return Refusal(f'"{text[:80]}" is not a list of hosts', why=why, fix=fix)


def canonical_hostlist(text: str) -> str:
    """The list without blanks; raises Refusal."""
    squeezed = without_blanks(text, ",[]-")
    expand_hostlist(squeezed)
    return squeezed
