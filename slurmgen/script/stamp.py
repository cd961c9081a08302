"""The line of a rendered script that a machine reads: what the script was rendered from.

`# slurmgen-stamp: {…}` is the last of the comments at the top, over the directives. It has
slurmgen's version; the job file's name, template and cluster; a hash of the job file's data and one
of the script without this line; and the keys of the job file. A text that stands in the script
anyway (variables, commands, a script, a command's words) is not said again: its key has the line
where it stands. So a secret isn't doubled, and the line stays short.

The same job file gives the same stamp, wherever and whenever it is rendered; its comments are no
part of it.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from slurmgen import __version__
from slurmgen.slurm.quoting import bash_expandable, bash_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slurmgen.script.plan import JobPlan

MARK = "# slurmgen-stamp: "
# More lines than the head of any template has.
MOST_COMMENTS = 500
# Of a job that is requeued, the step is started like this.
_IN_BACKGROUND = " <&0 &"
# As `launch.sbatch.j2` goes on in another line.
_CONTINUED = " \\\n  "


def stamped(
    text: str,
    plan: JobPlan,
    given: Mapping[str, Any],
    *,
    own: Mapping[str, Any],
    overrides: Iterable[str] = (),
) -> str:
    """The rendered script `text` with its stamp.

    given: the keys and values of the job file, with what `--set` (`overrides`) changed of them;
    own: without that. A text that is no script has none.
    """
    lines = text.split("\n")
    at = _end_of_comments(lines)
    if not at:
        return text
    keys = _keys(_Script(text, at), plan, _plain(given))
    stamp = {
        "slurmgen": __version__,
        "job": plan.source,
        "template": plan.template,
        "cluster": plan.profile,
        "sha256": {"job": hash_of(own), "script": hash_of_text(text + json.dumps(keys))},
        "set": sorted(overrides),
        "keys": keys,
    }
    said = {name: value for name, value in stamp.items() if value not in (None, [])}
    # ASCII alone, so that nothing in it can end the line; and no # a comment of its own.
    lines.insert(at, MARK + json.dumps(said).replace("#", "\\u0023"))
    return "\n".join(lines)


def line_of(text: str) -> int:
    """The number of the stamp's line, from 1; 0 where there is none."""
    for at, line in enumerate(text.split("\n", MOST_COMMENTS)[:MOST_COMMENTS], start=1):
        if line.startswith(MARK):
            return at
        if _is_below(line):
            return 0
    return 0


def without(text: str) -> str:
    """The script without its stamp."""
    at = line_of(text)
    if not at:
        return text
    lines = text.split("\n", at)
    return "\n".join([*lines[: at - 1], *lines[at:]])


def hash_of(data: Mapping[str, Any]) -> str:
    """A hash of a job file's keys and values, however they are laid out."""
    return hash_of_text(json.dumps(_plain(data), sort_keys=True))


def _end_of_comments(lines: Sequence[str]) -> int:
    """How many lines stand over the directives; 0 where it is no script."""
    if not lines[0].startswith("#!"):
        return 0
    head = enumerate(lines[:MOST_COMMENTS])
    return next((at for at, line in head if _is_below(line)), 0)


def _is_below(line: str) -> bool:
    return line.startswith("#SBATCH") or not line.startswith("#")


def hash_of_text(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Data as a YAML file would have it: text, lists and mappings, and no empty key."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


class _NoPlaceError(Exception):
    """The script doesn't hold the text."""


class _Script:
    """A script that will have its stamp behind `at` lines."""

    def __init__(self, text: str, at: int) -> None:
        self.text = f"\n{text}"
        self.at = at

    def place(self, block: str) -> int:
        """The first line of `block`, which stands there as it is."""
        found = self.text.find(f"\n{block}\n")
        if found < 0:
            raise _NoPlaceError
        line = self.text.count("\n", 0, found) + 1
        return line + (line > self.at)

    def lines(self, block: str, given: str) -> dict[str, int]:
        """The place of the lines of a text that is `given` with some line breaks at its end."""
        count = block.count("\n") + 1
        place = {"line": self.place(block), "lines": count}
        breaks = len(given) - len(given.rstrip("\n")) - len(block) + len(block.rstrip("\n"))
        return place if breaks == usual_breaks(count) else {**place, "breaks": breaks}

    def words(self, words: Sequence[str]) -> dict[str, int]:
        """The place of the last words of the step."""
        found = self.text.rfind("\nsrun ")
        if found < 0:
            raise _NoPlaceError
        line = self.text.count("\n", 0, found) + 1
        step = self.text[found + 1 :].replace(_CONTINUED, " ").partition("\n")[0]
        quoted = " ".join(map(bash_word, words))
        if not step.removesuffix(_IN_BACKGROUND).endswith(f" {quoted}"):
            raise _NoPlaceError
        return {"line": line + (line > self.at), "words": len(words)}


def _keys(script: _Script, plan: JobPlan, given: dict[str, Any]) -> dict[str, Any] | None:
    """The keys with the places of long texts in the script; None where one isn't there."""
    keys = dict(given)
    try:
        if keys.get("env"):
            values = dict(plan.env)
            keys["env"] = {
                name: script.place(f"export {name}={bash_expandable(values[name], required=False)}")
                for name in keys["env"]
            }
        if plan.entrypoint and keys.get("args"):
            keys["args"] = script.words(plan.words[4:])
        if plan.command is not None:
            keys["command"] = script.lines(plan.command.rstrip("\n"), keys["command"])
        elif "command" in keys:
            keys["command"] = script.words(plan.words)
        if plan.script is not None:
            body, given_text = plan.script.removesuffix("\n"), keys["script"]
            if body.startswith("#!"):
                below = script.lines(body.partition("\n")[2], given_text)
                keys["script"] = {**below, "interpreter": 1}
            else:
                keys["script"] = script.lines(body, given_text)
        elif isinstance(keys.get("setup"), dict) and "commands" in keys["setup"]:
            commands = keys["setup"]["commands"]
            texts = [commands] if isinstance(commands, str) else commands
            places = [script.lines(text.rstrip("\n"), text) for text in texts]
            placed = places[0] if isinstance(commands, str) else places
            keys["setup"] = {**keys["setup"], "commands": placed}
    except (_NoPlaceError, KeyError, IndexError):
        return None
    return keys


def usual_breaks(lines: int) -> int:
    """The line breaks at the end of a text in a job file: a block has one."""
    return int(lines > 1)
