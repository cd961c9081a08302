"""Round trips: what is parsed and written again means the same, and is written alike twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import assume, given
from hypothesis import strategies as st

from slurmgen.errors import Refusal
from slurmgen.slurm.grammars.array import parse_array
from slurmgen.slurm.grammars.begin import canonical_begin, offset_seconds
from slurmgen.slurm.grammars.constraint import canonical_constraint, features
from slurmgen.slurm.grammars.dependency import canonical_dependency
from slurmgen.slurm.grammars.export import canonical_export
from slurmgen.slurm.grammars.filename import check_pattern, log_directory
from slurmgen.slurm.grammars.gres import Gpus, parse_gpus, parse_gres
from slurmgen.slurm.grammars.mail import TYPES, canonical_mail_type
from slurmgen.slurm.grammars.memory import canonical_memory, parse_memory
from slurmgen.slurm.grammars.nodes import canonical_hostlist, check_node_count, expand_hostlist
from slurmgen.slurm.grammars.signal import canonical_signal
from slurmgen.slurm.grammars.time import canonical_time, format_time, parse_time
from slurmgen.slurm.options.values import check_option

if TYPE_CHECKING:
    from collections.abc import Callable

CANONICAL: tuple[Callable[[str], str], ...] = (
    lambda text: str(parse_array(text)),
    canonical_begin,
    canonical_constraint,
    canonical_dependency,
    canonical_export,
    canonical_hostlist,
    canonical_mail_type,
    canonical_memory,
    canonical_signal,
    canonical_time,
    check_node_count,
    check_pattern,
    parse_gres,
    lambda text: str(parse_gpus(text)),
)
# Mostly what values are made of, so that some texts are valid and most nearly so.
TEXT = st.one_of(
    st.text(
        st.sampled_from("0123456789:-%,?+@[]()&|*._ abdefgijmnoprstuwxkGMTRUSB=\n\t\\'ſ٣"),
        max_size=14,
    ),
    st.text(max_size=8),
)


def outcome(read: Callable[[], str | None]) -> str | Refusal | None:
    """What is read, or the refusal, which always says what, why and what to do."""
    try:
        return read()
    except Refusal as refused:
        refusal = refused
    assert refusal.what
    assert refusal.why
    assert refusal.fix
    return refusal


@given(TEXT, st.sampled_from(CANONICAL))
def test_a_text_is_refused_or_its_canonical_form_is_a_fixed_point(
    text: str, canonical: Callable[[str], str]
) -> None:
    once = outcome(lambda: canonical(text))
    if isinstance(once, str):
        assert canonical(once) == once
        assert "\n" not in once


@given(st.integers(1, 24_855 * 86_400))
def test_a_time_is_written_and_read_as_the_same_seconds(seconds: int) -> None:
    text = format_time(seconds)
    assert parse_time(text) == seconds
    assert canonical_time(text) == text
    assert parse_time(f"{seconds}s") == seconds


@given(st.integers(0, 400), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
def test_every_form_of_a_time_counts_alike(d: int, h: int, m: int, s: int) -> None:
    total = d * 86_400 + h * 3_600 + m * 60 + s
    assume(total)
    assert parse_time(f"{d}-{h}:{m}:{s}") == total
    assert parse_time(f"{d * 24 + h}:{m}:{s}") == total
    if parts := "".join(f"{n}{u}" for n, u in ((d, "d"), (h, "h"), (m, "m"), (s, "s")) if n):
        assert parse_time(parts) == total


@given(st.integers(0, 2**40), st.sampled_from(["", "M", "G", "T", "K"]), st.booleans())
def test_memory_keeps_its_amount(number: int, unit: str, small: bool) -> None:
    text = f"{number}{unit}"
    try:
        canonical = canonical_memory(text.lower() if small else text)
    except Refusal:
        assert number * {"G": 2**10, "T": 2**20}.get(unit, 1) > 2**40
        return
    assert parse_memory(canonical) == parse_memory(text)
    assert canonical in (text, "0")


@given(st.one_of(st.none(), st.from_regex(r"[a-z][a-z0-9_.-]{0,8}", fullmatch=True)), st.data())
def test_gpus_are_written_and_read_alike(kind: str | None, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 64))
    assume(kind not in ("gpu", "gres"))
    assert parse_gpus(str(Gpus(kind, count))) == (kind, count)


@given(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 30), st.integers(1, 5)), min_size=1))
def test_an_array_counts_each_index_once(items: list[tuple[int, int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}:{step}" for first, more, step in items)
    named = [i for first, more, step in items for i in range(first, first + more + 1, step)]
    try:
        array = parse_array(text)
    except Refusal:
        assert len(set(named)) < len(named)
    else:
        assert (array.tasks, array.max_index) == (len(set(named)), max(named))
        assert parse_array(f"[{text}]%7") == array._replace(throttle=7, spelled=f"{text}%7")


@given(st.lists(st.integers(0, 2_000), min_size=1, max_size=20), st.sampled_from([1, 3]))
def test_a_list_of_hosts_expands_to_its_names(numbers: list[int], width: int) -> None:
    names = [f"n{number:0{width}}" for number in numbers]
    bracketed = f"n[{','.join(name[1:] for name in names)}]"
    assert expand_hostlist(",".join(names)) == names
    assert expand_hostlist(canonical_hostlist(bracketed)) == names


@given(st.lists(st.sampled_from(TYPES), min_size=1))
def test_mail_types_are_the_same_in_any_case(types: list[str]) -> None:
    assume("NONE" not in types or len(types) == 1)
    assert canonical_mail_type(" , ".join(types).lower()) == ",".join(types)


@given(st.integers(0, 10**6), st.sampled_from(["", "second", "minutes", "hours", "days", "weeks"]))
def test_an_offset_from_now_is_counted(number: int, unit: str) -> None:
    seconds = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}.get(unit[:1], 1)
    assert offset_seconds(canonical_begin(f"Now + {number} {unit}".strip())) == number * seconds


@given(st.lists(st.from_regex(r"[a-z][a-z0-9_.-]*", fullmatch=True), min_size=1), st.data())
def test_the_features_of_a_constraint_are_found(names: list[str], data: st.DataObject) -> None:
    text = names[0]
    for name in names[1:]:
        text += data.draw(st.sampled_from([" & ", "|", ","])) + name
    assert features(canonical_constraint(text)) == names


@given(TEXT, st.sampled_from(["nice", "switches", "priority", "gpu-bind", "mem-bind", "cpu-freq"]))
def test_an_option_is_refused_or_kept(text: str, name: str) -> None:
    kept = outcome(lambda: check_option(name, text, "22.05"))
    assert isinstance(kept, Refusal) or kept in (text, None)


@given(TEXT)
def test_the_folder_of_a_log_has_no_pattern(text: str) -> None:
    folder, unknown = log_directory(text, job_name="name", user="me")
    assert unknown is None or unknown.startswith(folder or "")
