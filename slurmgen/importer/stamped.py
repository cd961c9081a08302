"""A script that slurmgen has rendered and nobody has changed: the job file that its stamp holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurmgen.errors import InvalidInput
from slurmgen.importer.yaml_text import Entry, write
from slurmgen.jobfile.keys import KEYS
from slurmgen.jobfile.load import load_job
from slurmgen.script import stamp_reader

if TYPE_CHECKING:
    from slurmgen.script.stamp_reader import Stamp

# Whatever else looks like a number, or like a truth value, is text there.
_TEXTS = ("env", "job_name", "comment", "command", "args")


def job_file(text: str, said: Stamp) -> str | None:
    """The job file with the same keys; None where the script was changed, or doesn't hold them."""
    if not stamp_reader.is_as_rendered(text, said):
        return None
    keys = stamp_reader.keys_of(text, said)
    if keys is None:
        return None
    found = write([_entry(key, value, key) for key, value in keys.items()])
    try:
        load_job(found, said.source)
    except InvalidInput:
        # Somebody has made the stamp up.
        return None
    return found


def _entry(key: str, value: Any, top: str) -> Entry:
    if isinstance(value, dict):
        return Entry(key, [_entry(inner, item, top) for inner, item in value.items()])
    if isinstance(value, str):
        bare = key in KEYS and KEYS[key].kind.is_bare
        clear = bare or (top not in _TEXTS and (value in _TRUTHS or value.isdecimal()))
        return Entry(key, value, clear=clear)
    return Entry(key, tuple(map(str, value)))


_TRUTHS = ("true", "false")
