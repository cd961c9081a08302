"""Whatever a job file says, its script gives it back, and says no value of a variable twice."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slurmgen.cluster import generic
from slurmgen.importer import import_script
from slurmgen.jobfile.job import JobSpec
from slurmgen.jobfile.source import parse_yaml
from slurmgen.script import stamp, stamp_reader
from slurmgen.script.plan import resolve
from slurmgen.script.render import render
from slurmgen.slurm.quoting import bash_expandable, bash_word
from slurmgen.slurm.unquoting import read_words
from tests.property.test_scripts import jobs

ARGUMENTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
LITERALS = ARGUMENTS.map(lambda text: text.replace("${", "$${"))
EXPANDABLE = st.lists(LITERALS.filter(lambda text: not text.endswith("$")) | st.just("${HOME}"))
LINES = st.lists(
    st.sampled_from(["python train.py", "  indented", "", "srun x", "#SBATCH --x", "COMMAND", "é"]),
    min_size=1,
).map("\n".join)
ENDS = st.sampled_from(["", "\n", "\n\n"])
TEXTS = st.builds(str.__add__, LINES.filter(lambda text: bool(text.strip())), ENDS)
STARTED = st.fixed_dictionaries({"command": TEXTS}) | st.fixed_dictionaries(
    {"ddp": st.just("train.py:main"), "args": st.lists(ARGUMENTS)}
)


def data_of(text: str) -> Any:
    return parse_yaml(text, "job.yaml").data


def stamped(job: dict[str, Any]) -> tuple[str, str]:
    """The script of a job, without and with its stamp."""
    plan = resolve(JobSpec(**job), generic.PROFILE, source="job.yaml")
    text = render(plan)
    return text, stamp.stamped(text, plan, job, own=job)


@given(st.lists(ARGUMENTS, max_size=8))
def test_words_are_read_back(words: list[str]) -> None:
    assert read_words(" ".join(map(bash_word, words)), expandable=False) == words


@given(st.lists(EXPANDABLE.map("".join), max_size=4), st.booleans())
def test_values_are_read_back(values: list[str], required: bool) -> None:
    quoted = [bash_expandable(value, required=required) for value in values]
    read = read_words(" ".join(quoted), expandable=True)
    assert [bash_expandable(value, required=required) for value in read] == quoted
    assert read == values


def check(job: dict[str, Any]) -> None:
    text, script = stamped(job)
    assert stamp.without(script) == text
    said = stamp_reader.read(script)
    assert said is not None
    assert said.keys is not None
    assert stamp_reader.is_as_rendered(script, said)
    assert stamp_reader.keys_of(script, said) == {key: plain(value) for key, value in job.items()}
    imported = import_script(script, name="job")
    assert imported.notes == ()
    assert {**data_of(imported.text)} == {key: plain(value) for key, value in job.items()}


def plain(value: Any) -> Any:
    """As a YAML file has it."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else str(value)


@given(jobs())
def test_any_job(job: dict[str, Any]) -> None:
    check(job)


@given(jobs(), STARTED, st.lists(TEXTS, max_size=3))
def test_whatever_it_starts(
    job: dict[str, Any], started: dict[str, Any], commands: list[str]
) -> None:
    del job["command"]
    setup = {**job["setup"], "commands": commands} if commands else job["setup"]
    check({**job, **started, "setup": setup})


@given(st.text(max_size=300), st.booleans())
def test_a_stamp_that_somebody_made_up(text: str, whole: bool) -> None:
    _, script = stamped({"command": "python train.py", "env": {"A": "b"}})
    before, mark, rest = script.partition("# slurmgen-stamp: ")
    line, _, after = rest.partition("\n")
    forged = text.replace("\n", " ") if whole else f"{line[: len(text)]}{text}{line[len(text) :]}"
    changed = f"{before}{mark}{forged}\n{after}"
    said = stamp_reader.read(changed)
    if said is not None:
        stamp_reader.keys_of(changed, said)
    import_script(changed, name="job")
