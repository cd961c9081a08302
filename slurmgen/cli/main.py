"""The console script: the way into a verb, and the one error handler.

`render` and `lint` run in editors, hooks and loops, where what they cost is mostly imports. A
plain one is therefore recognised here, before Typer is loaded; whatever else is on the
command line, a wrong option too, goes to Typer.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from typing import Any, NoReturn

from slurmgen.cli import report
from slurmgen.errors import (
    EXIT_BUG,
    EXIT_FINDINGS,
    EXIT_INTERRUPTED,
    EXIT_OK,
    SlurmgenError,
)

# What `commands.render.run` and `commands.lint.run` call each option; several values are a list.
_RENDER = {
    "--cluster": "cluster",
    "-c": "cluster",
    "--set": "overrides",
    "--output": "output",
    "-o": "output",
    "--check": "check",
}
_LINT = {
    "--format": "format_",
    "--explain": "explain",
    "--select": "select",
    "--ignore": "ignore",
    "--severity": "severity",
    "--slurm": "slurm",
    "--cluster": "cluster",
    "-c": "cluster",
    "--fix": "fix",
    "--diff": "diff",
}
_LISTS = ("overrides", "select", "ignore")
_FLAGS = ("fix", "diff")


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
    except (OSError, MemoryError) as error:
        from slurmgen.cli.system_errors import explain

        problem = explain(error)
        report.error(problem)
        status = problem.exit_status
    except Exception:
        import traceback

        report.note(traceback.format_exc())
        report.note("slurmgen: this is a bug of slurmgen; please report it with the text above")
        status = EXIT_BUG
    sys.exit(status)


def _dispatch(arguments: list[str]) -> int:
    status = _plain(arguments)
    if status is not None:
        return status
    from slurmgen.cli.verbs import app

    if arguments[:1] == ["__complete"]:
        from slurmgen.cli.commands import completion

        return completion.complete(arguments[1:])
    try:
        app(prog_name="slurmgen")
    except OSError as error:
        # Help is Typer's to print.
        if error.errno != errno.ENOSPC:
            raise
        raise report.stdout_refused(error) from error
    return EXIT_OK


def _plain(arguments: list[str]) -> int | None:
    """The status of a verb that needed no Typer; None where it has to take the arguments."""
    verb, rest = arguments[:1], arguments[1:]
    given = plain(with_check_value(rest), _RENDER) if verb == ["render"] else None
    if given is not None and len(given[0]) == 1:
        from slurmgen.cli.commands import render

        return render.run(given[0][0], **given[1])
    given = plain(rest, _LINT) if verb == ["lint"] else None
    if given is not None:
        from slurmgen.cli.commands import lint

        return lint.run(given[0], **given[1])
    return None


def with_check_value(arguments: list[str]) -> list[str]:
    """The arguments of `render` with a value, if an empty one, for every `--check`.

    What stands behind it is the script to compare with, unless it is a job file or a folder.
    """
    found = []
    for index, argument in enumerate(arguments):
        following = arguments[index + 1] if index + 1 < len(arguments) else ""
        alone = (
            following[:1] in ("", "-")
            or following.endswith((".yaml", ".yml"))
            or os.path.isdir(following)
        )
        found.append("--check=" if argument == "--check" and alone else argument)
        if argument == "--":
            return [*found, *arguments[index + 1 :]]
    return found


def plain(arguments: list[str], options: dict[str, str]) -> tuple[list[str], dict[str, Any]] | None:
    """The files, and the values of the options by the names in `options`.

    None where Typer has to take the arguments, or to refuse them.
    """
    files: list[str] = []
    found: dict[str, Any] = {}
    rest = iter(arguments)
    for argument in rest:
        option, equals, value = argument.partition("=")
        if not argument.startswith("-") or argument == "-":
            if not argument:
                return None
            files.append(argument)
            continue
        name = options.get(option, "")
        if not name or (equals and (name in _FLAGS or not option.startswith("--"))):
            return None
        if name in _FLAGS:
            found[name] = True
            continue
        if not equals:
            value = next(rest, "")
        if name in _LISTS:
            found.setdefault(name, []).append(value)
        elif name in found or not value or value.startswith("-"):
            return None
        else:
            found[name] = value
    return files, found
