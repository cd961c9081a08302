"""The console script: the way into a verb, and the one error handler.

`render` runs in editors, hooks and loops, where what it costs is mostly imports. A plain
`render` is therefore recognised here, before Typer is loaded; whatever else is on the
command line, a wrong option too, goes to Typer.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from typing import NoReturn

from slurmgen import report
from slurmgen.errors import (
    EXIT_BUG,
    EXIT_FINDINGS,
    EXIT_INTERRUPTED,
    EXIT_OK,
    SlurmgenError,
)

_RENDER_OPTIONS = {
    "--cluster": "cluster",
    "-c": "cluster",
    "--set": "overrides",
    "--output": "output",
    "-o": "output",
    "--check": "check",
}


def main() -> NoReturn:
    """Run the verb on the command line and exit with its status."""
    # A verb lives for a moment: collecting garbage while it imports costs a tenth of its time.
    gc.disable()
    # Pydantic looks for plugins in the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        status = _dispatch(sys.argv[1:])
    except SlurmgenError as error:
        report.error(error)
        status = error.exit_status
    except BrokenPipeError:
        # What reads our output has stopped.
        report.discard_stdout()
        status = EXIT_FINDINGS
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    except Exception:
        import traceback

        report.note(traceback.format_exc())
        report.note("slurmgen: this is a bug of slurmgen; please report it with the text above")
        status = EXIT_BUG
    sys.exit(status)


def _dispatch(arguments: list[str]) -> int:
    plain = plain_render(arguments)
    if plain is not None:
        from slurmgen.commands import render

        found, overrides = plain
        return render.run(
            found["job"],
            cluster=found.get("cluster"),
            overrides=overrides,
            output=found.get("output"),
            check=found.get("check"),
        )
    from slurmgen.cli import app

    try:
        app(prog_name="slurmgen")
    except OSError as error:
        # Help is Typer's to print.
        if error.errno != errno.ENOSPC:
            raise
        raise report.stdout_refused(error) from error
    return EXIT_OK


def plain_render(arguments: list[str]) -> tuple[dict[str, str], list[str]] | None:
    """What `commands.render.run` is given: single values by name, and the overrides.

    None where Typer has to take the arguments, or to refuse them.
    """
    if arguments[:1] != ["render"]:
        return None
    found: dict[str, str] = {}
    overrides: list[str] = []
    rest = iter(arguments[1:])
    for argument in rest:
        option, equals, value = argument.partition("=")
        if not argument.startswith("-") or argument == "-":
            name, value = "job", argument
        elif option in _RENDER_OPTIONS:
            name = _RENDER_OPTIONS[option]
            if not (equals and option.startswith("--")):
                if equals:
                    return None
                value = next(rest, "")
        else:
            return None
        if name == "overrides":
            overrides.append(value)
        elif name in found or not value or (name != "job" and value.startswith("-")):
            return None
        else:
            found[name] = value
    return (found, overrides) if "job" in found else None
