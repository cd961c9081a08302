"""Whatever a script holds, reading it ends, and every place lies in the script."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmgen.reading.script import BatchScript
from tests.examples import examples

_TOKENS = [
    *"$(){}[]'\"`|&;<>#=\\\n \t",
    "$(",
    "${",
    "$((",
    "))",
    "<<EOF\n",
    "\nEOF\n",
    "&&",
    "||",
    "[[ ",
    " ]]",
    "for i in a b; do ",
    "done",
    "if x; then ",
    "fi\n",
    "case $x in a) ",
    ";; esac",
    "f() { ",
    "A=$A$A\n",
    "export B=$A\n",
    "srun -n4 ",
    "bash -c ",
    "torchrun --nproc_per_node=$N ",
    "python train.py ",
    'eval "$A"\n',
    "#SBATCH --nodes=2\n",
    "#!/bin/bash\n",
    "read -r -d '' A <<'EOF'\n",
    '"${A[@]}" ',
    "A+=(x y)\n",
    "é",
    "\0",
    "\udc80",
    "\U000f0000",
]
SHELL = st.lists(st.sampled_from(_TOKENS), max_size=60).map("".join)


@settings(max_examples=examples(600), deadline=None)
@given(text=SHELL | st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    script = BatchScript(text)
    for command in script.shell.commands:
        for word in command.words:
            assert 0 <= word.start <= word.end <= len(text)
            for piece in word.pieces:
                assert 0 <= piece.start <= piece.end <= len(text)
    for launch in script.launches:
        line, column = script.position(launch.start)
        assert text.split("\n")[line - 1 : line]
        assert column >= 1
    assert script.requests
