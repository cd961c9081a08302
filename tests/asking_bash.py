"""What a Bash makes of a variable, found by trying it: `slurmgen/jobfile/bash_variables.py`.

By hand, for any Bash: `python -m tests.asking_bash /path/to/bash` prints what it found.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.waiting import PATIENCE_S

# The way of a variable in a rendered script: exported in the batch shell, through the Bash in
# which `task` is a function, to the program.
ARRIVES = """\
set -eo pipefail
export {name}={value}
task() {{ exec "$@"; }}
exec {bash} -c "$(declare -f task); task \\"\\$@\\"" task env -0
"""
# What scripts and the setup of a job do, so that another output means another way.
BEHAVES = """\
set -eo pipefail
mkdir -p d/e
touch .hidden a b d/e/f
export {name}={value}
cd d; pwd; cd e; pwd; cd ../..
echo *
deep() {{ if [ "$1" -gt 0 ]; then deep $(($1 - 1)); fi; }}
deep 3
read -r line < <(sleep {late}; echo late)
echo "$line"
line='a b c'
set -- $line
echo $#
line='x*y'
echo "${{line//\\*/-}}"
[[ abc =~ b ]] && echo match
trap : USR1
kill -USR1 $$
sleep 0 & wait $!
{bash} -c 'deep() {{ echo deep; }}; deep; echo "$#" $BASH_SUBSHELL' x
set -x; :; set +x
{bash} --norc -ic 'echo interactive' < /dev/null
"""
# `@` becomes a file that is there once the value has run.
VALUES = ("a[$(touch @)]", "7", "x y")
WAYS = ("$(touch @)", ".", "*", "1", "-name")
# Bash complains of a locale that is not there, and goes on.
_LOCALE = re.compile(rb".*setlocale.*\n")


class Found(NamedTuple):
    """Whether a value ran, whether none of them arrived changed, and whether all else stayed."""

    runs: bool
    arrives: bool
    stays: bool

    @property
    def is_harmless(self) -> bool:
        return self.arrives and self.stays and not self.runs


def variables(bash: str) -> set[str]:
    """The variables that `bash` has by itself."""
    found = {"_"}
    for options in ([], ["--posix"], ["-i"]):
        command = [bash, "--norc", "--noprofile", *options, "-c", "compgen -v; compgen -A arrayvar"]
        found |= set(_run(command, Path("/"), {}).stdout.decode().split())
    return found


def names(bash: str) -> set[str]:
    """These, and every word of the program that could be a variable's name."""
    words = re.findall(rb"\0([A-Z_][A-Z0-9_]{2,30}|[a-z]+_[a-z]+|histchars)(?=\0)", _program(bash))
    return variables(bash) | {word.decode() for word in words} | {"ENV"}


def ask(
    bash: str, name: str, values: tuple[str, ...] = VALUES, ways: tuple[str, ...] = WAYS
) -> Found:
    """What `bash` makes of a variable called `name`."""
    runs, arrives = False, True
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for value in values:
            ran, given, done = _try(bash, name, value, ARRIVES, folder)
            runs |= ran
            passed_on = done.stdout.split(b"\0") if done.returncode == 0 else []
            arrives &= f"{name}={given}".encode() in passed_on
        stays = True
        for value in ways:
            ran, _, done = _try(bash, name, value, BEHAVES, folder)
            runs |= ran
            stays &= _seen(done, folder) == _usual(bash)
    return Found(runs, arrives, stays)


@cache
def _usual(bash: str) -> tuple[int, bytes, bytes]:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        return _seen(_try(bash, "NO_NAME_OF_BASH", "x", BEHAVES, folder)[2], folder)


def _try(
    bash: str, name: str, value: str, script: str, folder: Path
) -> tuple[bool, str, subprocess.CompletedProcess[bytes]]:
    marker = folder / "marker"
    given = value.replace("@", str(marker))
    # TMOUT counts whole seconds.
    late = 1.2 if (name, value) == ("TMOUT", "1") else 0
    text = script.format(name=name, value=shlex.quote(given), bash=shlex.quote(bash), late=late)
    (folder / "script").write_text(text)
    done = _run([bash, "script"], folder, {"PATH": "/usr/bin:/bin", "HOME": str(folder)})
    ran = marker.exists()
    marker.unlink(missing_ok=True)
    return ran, given, done


def _seen(done: subprocess.CompletedProcess[bytes], folder: Path) -> tuple[int, bytes, bytes]:
    printed, said = (t.replace(bytes(folder), b".") for t in (done.stdout, done.stderr))
    return done.returncode, printed, re.sub(rb"\d+", b"N", _LOCALE.sub(b"", said))


def _run(
    command: list[str], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        timeout=PATIENCE_S,
    )


def _program(bash: str) -> bytes:
    where = subprocess.run(["which", bash], capture_output=True, text=True, check=True).stdout
    return Path(where.strip()).read_bytes()


def main() -> None:
    """Print what the Bash on the command line makes of every name that it knows."""
    bash = sys.argv[1] if len(sys.argv) > 1 else "bash"
    known = sorted(names(bash))
    with ThreadPoolExecutor(4) as threads:
        answers = threads.map(lambda name: ask(bash, name), known)
        for name, found in zip(known, answers, strict=True):
            if not found.is_harmless:
                print(name, *(f"{key}={value}" for key, value in found._asdict().items()))


if __name__ == "__main__":
    main()
