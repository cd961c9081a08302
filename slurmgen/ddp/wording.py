"""Times and shares as the entrypoint writes them: for people, in few characters."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """``12 ms``, ``0.49 s``, ``10 min 3 s``, ``3 h 20 min``, ``2 d 5 h``."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.2g} ms"
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    for size, unit, part, small in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            count, rest = divmod(whole, size)
            return f"{count} {unit} {rest // part} {small}"
    return f"{whole} s"


def rate(per_second: float) -> str:
    """To three digits, without an exponent: ``0.0314``, ``2.04``, ``1234``."""
    return f"{per_second:.0f}" if per_second >= 100 else f"{per_second:.3g}"


def percent(share: float) -> str:
    """``0.03`` as ``3 %``."""
    return f"{share * 100:.0f} %"
