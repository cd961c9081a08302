"""Values of options under `sbatch:`, as sbatch 22.05.8 answers (`sbatch -v --test-only`)."""

from __future__ import annotations

import pytest

from slurmgen.errors import Refusal
from slurmgen.slurm.options import catalog
from slurmgen.slurm.options.values import GRAMMARS, check_option

READ = {
    "acctg-freq": "0|30|task=30|task=30,energy=10|filesystem=1,network=2",
    "cpu-freq": "high|low|medium|highm1|2000000|1000-2000|low-high|Performance|OnDemand",
    "delay-boot": "5",
    "distribution": "block|cyclic|block:cyclic|*:block|block:cyclic:fcyclic|block,Pack|*,NoPack",
    "extra-node-info": "1|1:2:3|*:2",
    "gpu-bind": "closest|none|single:2|per_task:1|map_gpu:0,1|mask_gpu:0x1,3|verbose,closest",
    "gpu-freq": "high|low|medium|highm1|1200|memory=high|high,memory=900|high,verbose",
    "hint": "compute_bound|memory_bound,multithread|nomultithread",
    "kill-on-invalid-dep": "yes|no",
    "mem-bind": "local|none|rank|quiet,local|verbose,local|map_mem:0,1|mask_mem:0x1|prefer,local",
    "mincpus": "1",
    "nice": "0|-5|2147483645|-2147483645",
    "no-kill": "off",
    "priority": "TOP|0|1|4294967292",
    "profile": "task|all|none|task,energy",
    "propagate": "ALL|NONE|NOFILE|NOFILE,STACK|FSIZE,DATA,RSS,NPROC,MEMLOCK,AS,CPU",
    "switches": "1|1@5|2@1-0|1@1:00:00",
    "thread-spec": "1",
    "tmp": "0|1G",
    "wait-all-nodes": "0|1",
}
REFUSED = {
    "acctg-freq": "x|task=x|foo=1",
    "contiguous": "yes",
    "cpu-freq": "x|p1",
    "delay-boot": "x",
    "distribution": "foo|block:foo|fcyclic|,pack|block:block:block:block|block,Pack,NoPack",
    "extra-node-info": "x",
    "gpu-bind": "foo|single|per_task|verbose|quiet,closest|map:0|map_gpu:a|mask_gpu:0xz",
    "gpu-freq": "x|1x|memory=x",
    "hint": "foo",
    "kill-on-invalid-dep": "maybe|y",
    "mem-bind": "foo",
    "mincpus": "0|x",
    "no-kill": "yes",
    "priority": "-1|4294967294|4294967295",
    "profile": "foo|filesystem",
    "propagate": "FOO|all|nofile|ALL,CORE",
    "switches": "0|-1|x|1x|@5",
    "thread-spec": "0|x",
    "tmp": "x|1.5G",
    "wait-all-nodes": "2|x",
}
# sbatch takes them, and does something else: 4294967293 is its mark for TOP, "task,foo"
# becomes "task", and a time it cannot read becomes INVALID.
TAKEN_WRONGLY = {
    "nice": "x|1.5",
    "priority": "x|4294967293|1.5",
    "profile": "task,foo",
    "switches": "1@|1@x|1@::",
}


def _cases(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, value) for name, values in table.items() for value in values.split("|")]


@pytest.mark.parametrize(("name", "value"), _cases(READ))
def test_reads(name: str, value: str) -> None:
    assert check_option(name, value, None)


@pytest.mark.parametrize(("name", "value"), [*_cases(REFUSED), *_cases(TAKEN_WRONGLY)])
def test_refuses(name: str, value: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_option(name, value, None)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("name", "value", "version", "fragment"),
    [
        ("label", None, None, "srun"),
        ("kill-on-bad-exit", "1", None, "srun"),
        ("hintt", "nomultithread", None, "no option"),
        ("ntasks-per-no", "2", None, "no option"),
        ("hint", None, None, "no value"),
        ("power", "level", "24.11", "no option"),
        ("prefer", "x", "20.11", "no option"),
        ("comment", "a\nb", None, ""),
        ("network", "x" * 1025, None, "long"),
    ],
)
def test_says_why(name: str, value: str | None, version: str | None, fragment: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_option(name, value, version)
    assert fragment in f"{caught.value.what} {caught.value.why}"


def test_a_flag_has_no_value() -> None:
    assert check_option("contiguous", "true", None) is None


@pytest.mark.parametrize(
    ("name", "version", "known"),
    [
        ("power", "23.11.1", True),
        ("power", "24.05", False),
        ("prefer", "22.05.8", True),
        ("prefer", "20.11", False),
        ("checkpoint", None, False),
        ("mem-update", None, True),
    ],
)
def test_which_release_has_it(name: str, version: str | None, *, known: bool) -> None:
    option = catalog.find(name)
    assert option is not None
    assert catalog.is_known_in(option, version) is known


def test_names_are_whole_and_either_spelling_will_do() -> None:
    assert catalog.find("mem_per_cpu") is catalog.find("mem-per-cpu")
    assert catalog.find("ntasks-per-no") is None
    assert catalog.suggest("constrant") == "constraint"
    assert catalog.suggest("C") == "constraint"
    assert not any(catalog.is_srun_only(name) for name in catalog.options())
    assert catalog.is_srun_only("cpu_bind")


def test_what_the_table_says_of_values_is_said_of_them() -> None:
    named = {option.grammar for option in catalog.options().values() if option.grammar}
    assert named == set(GRAMMARS)


def test_one_name_has_another_argument_for_srun() -> None:
    sbatch, srun = catalog.options(), catalog.srun_options()
    both = sorted(sbatch.keys() & srun.keys())
    assert [n for n in both if sbatch[n].argument != srun[n].argument] == ["wait"]
    letters = catalog.by_letter(srun)
    assert {
        letter: option.name
        for letter, option in catalog.by_letter(sbatch).items()
        if letter in letters and letters[letter].name != option.name
    } == {}
