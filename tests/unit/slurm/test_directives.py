"""Directives as sbatch reads them, where they stand, and what it would not read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmgen.errors import Refusal
from slurmgen.slurm.directives import Directive, DirectiveBlock, DirectiveProblem, read, split_words
from tests.work import calls


def block(*lines: str) -> DirectiveBlock:
    return read("\n".join(["#!/bin/bash", *lines, "true", ""]))


def options(*lines: str) -> list[tuple[str, str | None]]:
    return [(d.option, d.value) for d in block(*lines).directives]


def problem(*lines: str) -> DirectiveProblem:
    """The only problem."""
    (found,) = block(*lines).problems
    return found


def mended(*lines: str) -> str:
    """The lines with the one problem replaced by what was meant."""
    text = "\n".join(["#!/bin/bash", *lines, "true", ""])
    (found,) = read(text).problems
    assert found.meant is not None
    new = text[: found.start] + found.meant + text[found.end :]
    assert read(new).problems == ()
    return new.removeprefix("#!/bin/bash\n").removesuffix("\ntrue\n")


# --- what sbatch reads ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#SBATCH", []),
        ("#SBATCH # nothing", []),
        ("#SBATCH --nodes=2", [("nodes", "2")]),
        ("#SBATCH --nodes 2", [("nodes", "2")]),
        ("#SBATCH -N 2", [("nodes", "2")]),
        ("#SBATCH -N2", [("nodes", "2")]),
        ("#SBATCH\t-N2\v-n3\f-c4", [("nodes", "2"), ("ntasks", "3"), ("cpus-per-task", "4")]),
        ("#SBATCH-N2", [("nodes", "2")]),
        ("#SBATCH--nodes=2", [("nodes", "2")]),
        ("#SBATCH -N2 -n 8 # eight", [("nodes", "2"), ("ntasks", "8")]),
        ("#SBATCH -J a#b -N2", [("job-name", "a")]),
        ("#SBATCH -J 'a#b' -N2", [("job-name", "a#b"), ("nodes", "2")]),
        ('#SBATCH -J "two words"', [("job-name", "two words")]),
        ("#SBATCH --comment=a\"b c\"'d'", [("comment", "ab cd")]),
        (r'#SBATCH -J "a\"b"', [("job-name", 'a"b')]),
        (r"#SBATCH -J 'a\'b'", [("job-name", "a'b")]),
        (r"#SBATCH -J a\#b", [("job-name", "a#b")]),
        ("#SBATCH --nodes=2 \\", [("nodes", "2")]),
        ("#SBATCH -Hs -N2", [("hold", None), ("oversubscribe", None), ("nodes", "2")]),
        ("#SBATCH -HsN2", [("hold", None), ("oversubscribe", None), ("nodes", "2")]),
        ("#SBATCH --exclusive", [("exclusive", None)]),
        ("#SBATCH --exclusive=user -N2", [("exclusive", "user"), ("nodes", "2")]),
        ("#SBATCH -koff", [("no-kill", "off")]),
        ("#SBATCH -k -N2", [("no-kill", None), ("nodes", "2")]),
        ("#SBATCH --nice=-5", [("nice", "-5")]),
        ("#SBATCH --time -1", [("time", "-1")]),
        ("#SBATCH --ntasks-per-no=2", [("ntasks-per-node", "2")]),
        ("#SBATCH --tasks=4", [("tasks-per-node", "4")]),
        ("#SBATCH --job x", [("job-name", "x")]),
        ("#SBATCH --reserv=x", [("reservation", "x")]),
        ("#SBATCH --cluster=x --clusters=y", [("cluster", "x"), ("clusters", "y")]),
        ("#SBATCH --comment=", [("comment", "")]),
        ("#SBATCH -n2 --", [("ntasks", "2")]),
        ("#SBATCH --nodes=2\r", [("nodes", "2")]),
    ],
)
def test_a_line(line: str, expected: list[tuple[str, str | None]]) -> None:
    assert options(line) == expected
    assert block(line).problems == ()


@pytest.mark.parametrize(
    "line",
    [
        "##SBATCH --nodes=2",
        "## SBATCH --nodes=2",
        "###SBATCH --nodes=2",
        "# #SBATCH --nodes=2",
        "#-SBATCH --nodes=2",
        "#--SBATCH --nodes=2",
        "#xSBATCH --nodes=2",
        "# SBATCH options below",
        "# SBATCH - the options",
        "# SBATCH -- the options",
        "# SBATCH",
        "# sbatch --array=0-9 job.sbatch",
        "#sbatch --array=0-9 job.sbatch",
        "# sbatch -N 2",
        "# Usage: sbatch --nodes=2 job.sh",
        "#SEARCH --nodes=2",
        "# match -n 4",
        "#PBS -N name",
        "#$ -N name",
        "#BATCH options",
        "# SBATCH: options",
        "# SBATCH-Kopf ---",
        "",
        "\t",
    ],
)
def test_comments(line: str) -> None:
    assert block(line, "#SBATCH -n2").problems == ()
    assert options(line, "#SBATCH -n2") == [("ntasks", "2")]


def test_where_an_option_stands() -> None:
    text = "#!/bin/sh\n\n#SBATCH  -Hc4 --comment='a b' # x\n"
    hold, cpus, comment = read(text).directives
    assert (hold.line, hold.column, hold.length) == (3, 10, 2)
    assert (cpus.column, text[cpus.start : cpus.end], cpus.spelled) == (12, "c4", "-c")
    assert cpus.value_start is not None
    assert text[cpus.value_start : cpus.value_end] == "4"
    assert text[comment.start : comment.end] == "--comment='a b'"
    assert text[comment.value_start : comment.value_end] == "'a b'"
    assert comment.column == comment.start - text.rfind("\n", 0, comment.start)


def test_a_value_in_the_next_word() -> None:
    text = '#SBATCH --comment "a b"\n'
    (directive,) = read(text).directives
    assert text[directive.value_start : directive.value_end] == '"a b"'
    assert directive.length == len('--comment "a b"')


def test_quotes_before_the_value() -> None:
    text = "#SBATCH '--comment=a b'\n"
    (directive,) = read(text).directives
    assert directive.value_start == text.index("a b")


@pytest.mark.parametrize("command", ["true", "set -e", "{", "()", "nodes=2", "\u00a0"])
def test_the_first_command_ends_the_block(command: str) -> None:
    text = f"#!/bin/sh\n#SBATCH -n2\n # comment\n\n{command}\n#SBATCH -N2\n"
    found = read(text)
    assert [d.option for d in found.directives] == ["ntasks"]
    assert found.ends_at_line == 5


@pytest.mark.parametrize(
    ("text", "line"), [("", 1), ("#!/bin/sh", 2), ("#!/bin/sh\n#SBATCH -n2\n\n\n", 5)]
)
def test_a_block_without_an_end(text: str, line: int) -> None:
    assert read(text).ends_at_line == line


def test_components() -> None:
    found = block(
        "#SBATCH -n2", "#SBATCH hetjob", "#SBATCH -n3", "#SBATCH\tPackJob # 3", "#SBATCH -n4"
    )
    assert [(d.component, d.value) for d in found.directives] == [(0, "2"), (1, "3"), (2, "4")]
    assert found.components == 3
    assert found.problems == ()


def test_no_component() -> None:
    found = block("#SBATCH --job-name=myhetjob1 --comment='a hetjob'", "#SBATCH -n3 # hetjob")
    assert found.components == 1
    assert found.problems == ()


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("#SBATCH hetjob -N3 -n5", "-N3 -n5"),
        ("#SBATCH -N2 hetjob -n5", "hetjob -n5"),
        ("#SBATCH --exclusive hetjob -n5", "hetjob -n5"),
        ('#SBATCH -N2 "" -n5', '"" -n5'),
    ],
)
def test_what_sbatch_reads_over(line: str, hidden: str) -> None:
    found = problem(line)
    assert (found.kind, found.text) == ("stray-text", hidden)
    assert "ntasks" not in dict(options(line))


def test_lines_for_other_schedulers() -> None:
    text = "#!/bin/sh\n#PBS -N x\n#SBATCH -n2\ntrue\n#BSUB -J y\n #PBS -N z\n#PBSX\n"
    assert read(text).translated == (2, 5)


# --- what it would not read -----------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "mended_line"),
    [
        ("#sbatch --nodes=2", "#SBATCH --nodes=2"),
        ("#Sbatch --nodes=2", "#SBATCH --nodes=2"),
        ("#SBatch -N 2", "#SBATCH -N 2"),
        ("#SABTCH --nodes=2", "#SBATCH --nodes=2"),
        ("#SBTACH --nodes=2", "#SBATCH --nodes=2"),
        ("#SBATC --nodes=2", "#SBATCH --nodes=2"),
        ("#SBACTH --nodes=2", "#SBATCH --nodes=2"),
        ("#BATCH --nodes=2", "#SBATCH --nodes=2"),
        ("#SBTCH --nodes=2", "#SBATCH --nodes=2"),
        ("#SSBATCH --nodes=2", "#SBATCH --nodes=2"),
        ("#SBTACH\t--nodes=2", "#SBATCH --nodes=2"),
        ("# SBATCH --nodes=2", "#SBATCH --nodes=2"),
        ("#\tSBATCH --nodes=2", "#SBATCH --nodes=2"),
        (" #SBATCH --nodes=2", "#SBATCH --nodes=2"),
        ("\t#SBATCH --nodes=2", "#SBATCH --nodes=2"),
        ("#!SBATCH --nodes=2", "#SBATCH --nodes=2"),
        ("#SBATCH\u00a0--nodes=2", "#SBATCH --nodes=2"),
        ("\ufeff#SBATCH --nodes=2", "#SBATCH --nodes=2"),
        ("//SBATCH --nodes=2", "#SBATCH --nodes=2"),
        ("SBATCH --nodes=2", "#SBATCH --nodes=2"),
        ("＃SBATCH --nodes=2", "#SBATCH --nodes=2"),
        ("#SLURM --nodes=2", "#SBATCH --nodes=2"),
    ],
)
def test_not_recognised(line: str, mended_line: str) -> None:
    found = problem(line)
    assert found.kind == "not-recognised"
    assert found.line == 2
    assert mended(line) == mended_line
    assert found.spaced == line.startswith(("# S", "#\tS"))


def test_the_options_of_a_line_that_is_not_recognised() -> None:
    assert problem("#sbatch -N2 --time=3 -J x").option == "nodes time job-name"


@pytest.mark.parametrize(
    ("line", "mended_line"),
    [
        ("#SBATCHX -N2", "#SBATCH -N2"),
        ("#SBATCH: --nodes=2", "#SBATCH --nodes=2"),
        ("#SBATCH:--nodes=2", "#SBATCH --nodes=2"),
        ("#SBATCH=-N2", "#SBATCH -N2"),
    ],
)
def test_glued_keyword(line: str, mended_line: str) -> None:
    assert problem(line).kind == "glued-keyword"
    assert mended(line) == mended_line
    assert options(line) == [("nodes", "2")]


def test_directives_after_the_first_command() -> None:
    found = block(
        "set -e", "#SBATCH -N2 # two", "  #SBATCH --time=3", "##SBATCH -n2", "# SBATCH -n2"
    )
    assert [(p.kind, p.line, p.column, p.text) for p in found.problems] == [
        ("after-command", 3, 1, "#SBATCH -N2 # two"),
        ("after-command", 4, 3, "#SBATCH --time=3"),
    ]


def test_a_misspelt_line_that_ends_the_block() -> None:
    kinds = [(p.kind, p.line) for p in block("//SBATCH -N2", "#SBATCH -n2").problems]
    assert kinds == [("not-recognised", 2), ("after-command", 3)]


def test_continuation() -> None:
    lines = ["#SBATCH --nodes=2 \\", "  --ntasks-per-node=4 \\", "  --gres=gpu:4"]
    found = problem(*lines)
    assert (found.kind, found.line, found.column, found.last_line) == ("continuation", 2, 19, 4)
    assert mended(*lines).split("\n") == [
        "#SBATCH --nodes=2 ",
        "#SBATCH --ntasks-per-node=4",
        "#SBATCH --gres=gpu:4",
    ]


def test_continuation_in_comments() -> None:
    lines = ["#SBATCH --nodes=2 \\", "#    --ntasks-per-node=4 \\", "# --gres=gpu:4"]
    found = problem(*lines, "#SBATCH -J x")
    assert (found.kind, found.line, found.last_line) == ("continuation", 2, 4)
    assert options(*lines, "#SBATCH -J x") == [("nodes", "2"), ("job-name", "x")]
    assert mended(*lines).split("\n") == [
        "#SBATCH --nodes=2 ",
        "#SBATCH --ntasks-per-node=4",
        "#SBATCH --gres=gpu:4",
    ]


def test_bare_options() -> None:
    found = problem("#SBATCH --nodes=2", "--ntasks=4")
    assert (found.kind, found.line, found.last_line) == ("continuation", 3, 3)
    assert mended("#SBATCH --nodes=2", "--ntasks=4") == "#SBATCH --nodes=2\n#SBATCH --ntasks=4"


def test_a_list_that_goes_on() -> None:
    found = problem("#SBATCH --mail-type=END,\\", "FAIL")
    assert (found.kind, found.meant) == ("continuation", None)


@pytest.mark.parametrize(
    "following", [["#SBATCH -n2"], ["", "module load cuda"], ["# x"], ["srun ./a"], ["cd /x"]]
)
def test_a_harmless_backslash(following: list[str]) -> None:
    assert block("#SBATCH --nodes=2 \\", *following).problems == ()


@pytest.mark.parametrize(
    ("line", "mended_line", "option"),
    [
        ("#SBATCH --mem 64 GB", "#SBATCH --mem 64GB", ("mem", "64GB")),
        ("#SBATCH --mem=64 g", "#SBATCH --mem=64G", ("mem", "64G")),
        ("#SBATCH --mem=64 GiB # x", "#SBATCH --mem=64GB # x", ("mem", "64GB")),
        ("#SBATCH --time=3 days", "#SBATCH --time=3-00:00:00", ("time", "3-00:00:00")),
        ("#SBATCH -t 24 hours", "#SBATCH -t 24:00:00", ("time", "24:00:00")),
        (
            "#SBATCH --mail-type=END, FAIL",
            "#SBATCH --mail-type=END,FAIL",
            ("mail-type", "END,FAIL"),
        ),
        ("#SBATCH --array 1,3, 5", "#SBATCH --array 1,3,5", ("array", "1,3,5")),
        ("#SBATCH --job-name = x", "#SBATCH --job-name=x", ("job-name", "x")),
        ("#SBATCH --job-name =x", "#SBATCH --job-name=x", ("job-name", "x")),
        ("#SBATCH --job-name= x", "#SBATCH --job-name=x", ("job-name", "x")),
        ("#SBATCH -J = x", "#SBATCH -J x", ("job-name", "x")),
        ("#SBATCH -J my job", '#SBATCH -J "my job"', ("job-name", "my job")),
        ("#SBATCH --exclusive user", "#SBATCH --exclusive=user", ("exclusive", "user")),
        ("#SBATCH --nice 10", "#SBATCH --nice=10", ("nice", "10")),
        ("#SBATCH --nice -10", "#SBATCH --nice=-10", ("nice", "-10")),
        ("#SBATCH —nodes=2", "#SBATCH --nodes=2", ("nodes", "2")),
        ("#SBATCH –N 2", "#SBATCH -N 2", ("nodes", "2")),
    ],
)
def test_stray_text_that_was_meant(line: str, mended_line: str, option: tuple[str, str]) -> None:
    assert problem(line).kind == "stray-text"
    assert mended(line) == mended_line
    assert options(line) == [option]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("#SBATCH --nodes=2 two nodes", "two nodes"),
        ("#SBATCH two nodes -N2", "two nodes"),
        ("#SBATCH -N2 : -n3", ":"),
        ("#SBATCH --time :30", ":30"),
        ("#SBATCH -N2 -- -n3", "--"),
        ("#SBATCH -N2 bar=3", "bar=3"),
        ("#SBATCH --requeue yes", "yes"),
        ("#SBATCH --mem=64G per node", "per node"),
        ("#SBATCH hetjob2", "hetjob2"),
    ],
)
def test_other_stray_text(line: str, text: str) -> None:
    found = problem(line)
    assert (found.kind, found.text, found.meant) == ("stray-text", text, None)


@pytest.mark.parametrize("line", [r"#SBATCH -J a\ b", r"#SBATCH -N2 \ -n3"])
def test_escaped_blank(line: str) -> None:
    assert problem(line).kind == "escaped-blank"


@pytest.mark.parametrize("line", ["#SBATCH -J 'a b", '#SBATCH -J "a b # c', "#SBATCH -J John's"])
def test_unclosed_quote(line: str) -> None:
    found = problem(line)
    assert found.kind == "unclosed-quote"
    assert found.text[0] in "'\""
    with pytest.raises(Refusal, match="not closed"):
        split_words(line.removeprefix("#SBATCH"))


@pytest.mark.parametrize(
    ("line", "mended_line"),
    [
        ("#SBATCH --ntasks_per_node=4", "#SBATCH --ntasks-per-node=4"),
        ("#SBATCH --NODES=4", "#SBATCH --nodes=4"),
        ("#SBATCH -nodes=2", "#SBATCH --nodes=2"),
        ("#SBATCH -time 2:00", "#SBATCH --time 2:00"),
        ("#SBATCH -job-name=x", "#SBATCH --job-name=x"),
        ("#SBATCH -ntasks_per_node=4", "#SBATCH --ntasks-per-node=4"),
        ("#SBATCH -job=4", "#SBATCH --job-name=4"),
        ("#SBATCH -exclusive", "#SBATCH --exclusive"),
    ],
)
def test_unknown_option_that_was_meant(line: str, mended_line: str) -> None:
    assert problem(line).kind == "unknown-option"
    assert mended(line) == mended_line
    assert block(line).directives[0].option == problem(line).option


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("#SBATCH --label", "label"),
        ("#SBATCH --cpu_bind=none", "cpu-bind"),
        ("#SBATCH --foo=3", None),
        ("#SBATCH --foo 3 -n2", None),
        ("#SBATCH --gress=gpu:1", "gres"),
        ("#SBATCH --cpu-per-task 4", "cpus-per-task"),
        ("#SBATCH -Z", None),
        ("#SBATCH -HZ", None),
    ],
)
def test_unknown_option(line: str, meant: str | None) -> None:
    found = problem(line)
    assert (found.kind, found.option, found.meant) == ("unknown-option", meant, None)


def test_the_value_of_a_plugin() -> None:
    assert options("#SBATCH --foo 3 -n2", "#SBATCH --bar -n3") == [
        ("foo", "3"),
        ("ntasks", "2"),
        ("bar", None),
        ("ntasks", "3"),
    ]


@pytest.mark.parametrize("name", ["gpu", "cpus", "mem-per", "mail", "ntasks-per", "no", "ex"])
def test_ambiguous_option(name: str) -> None:
    assert problem(f"#SBATCH --{name}=4").kind == "ambiguous-option"


@pytest.mark.parametrize(
    "line", ["#SBATCH --nodes", "#SBATCH -N", "#SBATCH --comment --nodes=2", '#SBATCH -J ""']
)
def test_missing_value(line: str) -> None:
    assert problem(line).kind == "missing-value"


def test_an_option_of_the_next_line_is_no_value() -> None:
    assert options("#SBATCH --comment", "#SBATCH --nodes=2") == [("comment", None), ("nodes", "2")]


@pytest.mark.parametrize("line", ["#SBATCH --hold=3", "#SBATCH -H=3", "#SBATCH --contiguous=yes"])
def test_unexpected_value(line: str) -> None:
    found = problem(line)
    assert (found.kind, found.text[0]) == ("unexpected-value", "=")


@pytest.mark.parametrize(
    ("line", "mended_line"),
    [
        ("#SBATCH -J=x", "#SBATCH -J x"),
        ("#SBATCH -t=24:00:00 # x", "#SBATCH -t 24:00:00 # x"),
        ("#SBATCH -N= 2", "#SBATCH -N 2"),
        ("#SBATCH -HN=2", "#SBATCH -HN 2"),
    ],
)
def test_short_option_equals(line: str, mended_line: str) -> None:
    assert problem(line).kind == "short-option-equals"
    assert mended(line) == mended_line


# --- whatever it is -------------------------------------------------------------------

_PARTS = [
    "#SBATCH",
    "#sbatch",
    " ",
    "\t",
    "--nodes",
    "-N",
    "=",
    "2",
    "'",
    '"',
    "\\",
    "#",
    ",",
    "\r",
]
_PARTS += [
    "\n",
    "\n#SBATCH ",
    "hetjob",
    "--",
    "-",
    "é",
    "\0",
    "\u00a0",
    "—",
    "#PBS -N x\n",
    "true\n",
]


@given(st.lists(st.sampled_from(_PARTS), max_size=40).map("".join) | st.text(max_size=60))
def test_any_text(text: str) -> None:
    found = read(text)
    lines = text.split("\n")
    items: list[Directive | DirectiveProblem] = [*found.directives, *found.problems]
    for item in items:
        assert 0 <= item.start <= item.end <= len(text)
        assert text.count("\n", 0, item.start) + 1 == item.line
        assert 1 <= item.column <= len(lines[item.line - 1]) + 1
        assert item.length >= 1
    for directive in found.directives:
        assert directive.line < found.ends_at_line
        if directive.value_start is not None:
            assert directive.value_end is not None
            assert directive.start <= directive.value_start <= directive.value_end
        assert directive.component < found.components


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "#SBATCH -H\n",
        "#SBATCH --foo\n",
        "# SBATCH -n4\n",
        "#SBATCH hetjob\n",
        "\n",
        "-H ",
        '"" ',
        "\\ ",
    ],
)
def test_four_mebibytes(part: str) -> None:
    text = "#SBATCH " + part * (4 * 1024 * 1024 // len(part))
    assert calls(lambda: read(text)) < 60_000_000
