"""What each grammar takes, how it writes it, and what it says against the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from slurmgen.errors import Refusal
from slurmgen.jobfile import readers
from slurmgen.slurm.grammars.array import parse_array
from slurmgen.slurm.grammars.begin import canonical_begin
from slurmgen.slurm.grammars.constraint import canonical_constraint
from slurmgen.slurm.grammars.dependency import canonical_dependency
from slurmgen.slurm.grammars.export import canonical_export
from slurmgen.slurm.grammars.filename import check_pattern
from slurmgen.slurm.grammars.gres import parse_gpus, parse_gres
from slurmgen.slurm.grammars.mail import canonical_mail_type
from slurmgen.slurm.grammars.memory import canonical_memory
from slurmgen.slurm.grammars.nodes import canonical_hostlist, check_node_count
from slurmgen.slurm.grammars.signal import canonical_signal
from slurmgen.slurm.grammars.time import canonical_time


def canonical_gpus(text: str) -> str:
    return str(parse_gpus(text))


def canonical_array(text: str) -> str:
    return str(parse_array(text))


Table = dict[Callable[[str], str], dict[str, str]]

# What is written -> how it is rendered.
TAKEN: Table = {
    canonical_time: {
        "5": "00:05:00",
        "5:30": "00:05:30",
        "1:99": "00:02:39",
        "4:00:00": "04:00:00",
        "100:00:00": "4-04:00:00",
        "1-0": "1-00:00:00",
        "1-5:30": "1-05:30:00",
        "1-25": "2-01:00:00",
        "2-00:00:01": "2-00:00:01",
        "0:30": "00:00:30",
        "infinite": "UNLIMITED",
        "Unlimited": "UNLIMITED",
        "-1": "UNLIMITED",
        "0": "UNLIMITED",
        "0:0": "UNLIMITED",
        "90m": "01:30:00",
        "4H": "04:00:00",
        "2d12h": "2-12:00:00",
        "1h30m": "01:30:00",
        "45s": "00:00:45",
        " 10 ": "00:10:00",
        "24855-0": "24855-00:00:00",
    },
    canonical_memory: {
        "64G": "64G",
        "4": "4",
        "4g": "4G",
        "4GB": "4G",
        "1500K": "1500K",
        "00004m": "4M",
        "0": "0",
        "0G": "0",
        "1T": "1T",
    },
    canonical_gpus: {"4": "4", "a100:4": "a100:4", "a100": "a100:1", "1g.5gb:2": "1g.5gb:2"},
    parse_gres: {"nvme": "nvme", "nvme:1, tmpdisk:100G": "nvme:1,tmpdisk:100G", "a:b:2": "a:b:2"},
    canonical_array: {
        "0-15": "0-15",
        "0-15:4%2": "0-15:4%2",
        "1, 3, 5-7%1": "1,3,5-7%1",
        "[0-3]%2": "0-3%2",
    },
    canonical_dependency: {
        "1234": "afterany:1234",
        "afterok:1:2,afterany:3": "afterok:1:2,afterany:3",
        "afterok:1 ? afterany:2": "afterok:1?afterany:2",
        "AFTEROK:1_3": "afterok:1_3",
        "afterok:1_*": "afterok:1_*",
        "after:1+5:2": "after:1+5:2",
        "Singleton": "singleton",
    },
    canonical_signal: {
        "USR1": "USR1",
        "sigusr1@120": "USR1@120",
        "b:usr1@0": "B:USR1@0",
        "RB:10@65535": "RB:10@65535",
        "64": "64",
    },
    canonical_mail_type: {"begin, END": "BEGIN,END", "time_limit_90": "TIME_LIMIT_90"},
    canonical_begin: {
        "now": "now",
        "Now + 2 hours": "now+2hours",
        "now+60": "now+60",
        "16:00": "16:00",
        "4:30PM": "4:30pm",
        "Noon": "noon",
        "tomorrow 16:00": "tomorrow 16:00",
        "16:00 Tomorrow": "16:00 tomorrow",
        "2030-01-20": "2030-01-20",
        "2030-01-20t12:34:00": "2030-01-20T12:34:00",
        "01/20/30": "01/20/30",
        "0120": "0120",
        "2032-02-29": "2032-02-29",
    },
    check_node_count: {"1": "1", " 16 ": "16"},
    canonical_hostlist: {
        "n1": "n1",
        "n[1-3, 7],login": "n[1-3,7],login",
        "r[1-2]n[01-03]": "r[1-2]n[01-03]",
    },
    canonical_constraint: {
        "a100": "a100",
        "a100 & nvlink": "a100&nvlink",
        "[rack1|rack2]": "[rack1|rack2]",
        "(a|b)&c": "(a|b)&c",
        "[a*2&b*4]": "[a*2&b*4]",
        "a*2": "a*2",
        "(a|b)*2": "(a|b)*2",
        "[(a|b)*1&c*2]": "[(a|b)*1&c*2]",
        "x.y-z:1": "x.y-z:1",
    },
    check_pattern: {"%x-%j.out": "%x-%j.out", "logs/%A_%4a": "logs/%A_%4a", "100%%": "100%%"},
    canonical_export: {"none": "NONE", "ALL,A=b c": "ALL,A=b c", "HOME": "HOME", "A=b=c": "A=b=c"},
}

_TIME = "write 4:00:00, 90m or 2d12h"
_ARRAY = "write, say, 0-15 or 1,3,5-7%2"
_JOB = "write, say, afterok:1234 or afterany:1234:1235"
_SIGNAL = "write, say, USR1@120 (steps), or B:USR1@120 (batch shell only)"
_MOMENT = "write, say, now+2hours, 16:00 or 2030-01-20T12:34:00"
_FEATURE = 'write, say, a100, "a100&nvlink" or "[rack1|rack2]"'
_PATTERN = "write %j for the job id, %x for its name, %A_%a in an array, %u for the user"

# What is written -> the fix: the value that was meant, where it can be computed.
REFUSED: Table = {
    canonical_time: {
        "1.5h": "write 01:30:00",
        "1.5": "write 00:01:30",
        "0.5d": "write 12:00:00",
        "4:00:00:00": _TIME,
        "1-00:00:00:00": _TIME,
        "1:": _TIME,
        "30m1h": _TIME,
        "4hours": _TIME,
        "-5": _TIME,
        "": _TIME,
        "24856-0": "write UNLIMITED",
        "٤m": "write 00:04:00",
    },
    canonical_memory: {
        "1.5G": "write 1536M",
        "1.5T": "write 1572864M",
        "4Gi": "write 4G",
        "4GiB": "write 4G",
        "4 G": "write 4G",
        "64 GB": "write 64G",
        "lots": "write 64G",
        "-4G": "write 4G",
        "8796093022208T": "write, say, 64G, or 0 for all memory of a node",
        "9" * 40: "write 64G",
    },
    canonical_gpus: {
        "4:a100": "write a100:4",
        "gpu:4": "write 4",
        "gpu:a100:4": "write a100:4",
        "gres/gpu:2": "write 2",
        "gpu": "write 1",
        "a100=4": "write a100:4",
        "0": "remove gpus_per_node",
        "a100:0": "remove gpus_per_node",
        "-1": "write, say, a100:4",
        "1K": "write, say, a100:4",
        "": "write, say, a100:4",
    },
    parse_gres: {
        "gpu:4": "write gpus_per_node: 4",
        "GPU:4": "write gpus_per_node: 4",
        "gres/gpu:a100:4": "write gpus_per_node: a100:4",
        "gres:gpu:2": "write gpus_per_node: 2",
        "gpu=2": "write gpus_per_node: 2",
        "gpu": "write gpus_per_node: 1",
        "none": "remove gres",
        "nvme=1": "write nvme:1",
        "": "write, say, nvme:1",
    },
    canonical_array: {
        "3-0": "write 0-3",
        "0-3:0": "write 0-3",
        "0-3%0": "write 0-3, or 0-3%1 for one at a time",
        "0-1%2%3": "write 0-1%2",
        "1,1": "name it once",
        "0-9,5": "name it once",
        "a": _ARRAY,
        "-1": _ARRAY,
        "0-3,": _ARRAY,
        "1 2": _ARRAY,
        "0-99999999": "split the array",
    },
    canonical_dependency: {
        "aftreok:1": _JOB,
        "afterokay:1": "write afterok",
        "afterok": _JOB,
        "afterok:": _JOB,
        "afterok:1 2": "join them by one of , ? : +",
        "1:2": _JOB,
        "afterok:1_x": _JOB,
        "afterok:1,after:2?after:3": 'use "," (all of them) or "?" (any of them)',
        "expand:1": _JOB,
    },
    canonical_signal: dict.fromkeys(
        "FOO WINCH RTMIN CHLD PIPE B: USR1@ USR1@-1 USR1@65536 USR1@1.5 X:USR1 BB:USR1 0".split(),
        _SIGNAL,
    ),
    canonical_mail_type: {
        "BEGIN,FIAL": "write FAIL",
        "TIMELIMIT": "write TIME_LIMIT",
        "NONE,END": "write END",
    },
    canonical_begin: {
        "4pm": "write 4:00pm",
        "12 AM": "write 12:00am",
        "now+1h": "write now+1hours",
        "now+10min": "write now+10minutes",
        "25:00": _MOMENT,
        "12:60": _MOMENT,
        "16:00pm": _MOMENT,
        "2030-02-30": _MOMENT,
        "20.01.30": _MOMENT,
        "2030-1-2": _MOMENT,
        "soon": _MOMENT,
        "": _MOMENT,
    },
    check_node_count: dict.fromkeys(
        ("0", "-1", "1-2", "2k", "1,2", "two", "1.0", ""), "write, say, nodes: 2"
    ),
    canonical_hostlist: {
        "n[3-1]": "write 1-3",
        "n[1-2": "write, say, n[1-4]",
        "n1,,n2": "remove the comma",
        "n[1-2]x": "list the names",
        "n1 n2": "join them by one of , [ ] -",
        "n[1-x]": "write, say, n[1-4,7]",
        "n[0-99999999]": "name fewer",
        "n$1": "write, say, n[1-4]",
    },
    canonical_constraint: {
        "a b": "join them by one of & | , ( ) [ ] *",
        "": _FEATURE,
        **dict.fromkeys("a&&b a& |a (a [a a) () !a a*0 a(b) [a|b]&[c|d]".split(), _FEATURE),
        **dict.fromkeys("((a|b)&c) ((a)) [a&b] [(a|b)&c]".split(), _FEATURE),
    },
    check_pattern: {
        "~/logs/%j": _PATTERN,
        "$HOME/%j": _PATTERN,
        "a\\b": "remove it",
        "%Z": "write %j, or %% for a percent sign",
        "%11j": "write %j, or %% for a percent sign",
        "50%": "write %j, or %% for a percent sign",
        "%b": "write %j or %A_%a",
        "": "remove the key",
        "a\nb": "write it in one line, without control characters",
        "logs/hetjob/%j": "write it otherwise, say het-job",
    },
    readers.name: {
        "my-HetJob": "write it otherwise, say het-job",
        "packjobs": "write it otherwise, say pack-job",
    },
    canonical_export: dict.fromkeys(
        ("", "A=b,c d", "1A=2", "A B", 'A="x,y"', "HOME,"), "put variables with values under env:"
    ),
}


@pytest.mark.parametrize(
    ("canonical", "text", "expected"),
    [(read, text, fine) for read, table in TAKEN.items() for text, fine in table.items()],
)
def test_taken(canonical: Callable[[str], str], text: str, expected: str) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize(
    ("canonical", "text", "fix"),
    [(read, text, fix) for read, table in REFUSED.items() for text, fix in table.items()],
)
def test_refused_with_a_fix(canonical: Callable[[str], str], text: str, fix: str) -> None:
    with pytest.raises(Refusal) as caught:
        canonical(text)
    assert caught.value.fix == fix
    assert caught.value.what
    assert caught.value.why


@pytest.mark.parametrize(
    ("canonical", "text", "fix"),
    [
        (read, text, fix.removeprefix("write "))
        for read, table in REFUSED.items()
        for text, fix in table.items()
        if fix.startswith("write ") and " " not in fix.removeprefix("write ")
    ],
)
def test_a_fix_that_is_one_value_is_itself_taken(
    canonical: Callable[[str], str], text: str, fix: str
) -> None:
    if canonical is canonical_dependency:
        fix += ":1"
    assert canonical(fix)
