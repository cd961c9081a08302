"""The console script: the way into a verb, and the one error handler."""

from __future__ import annotations

import errno
import gc
import os
import sys
from typing import NoReturn

from slurmgen.cli import quick, report
from slurmgen.errors import (
    EXIT_BUG,
    EXIT_FINDINGS,
    EXIT_INTERRUPTED,
    EXIT_OK,
    SlurmgenError,
)


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


def _dispatch(words: list[str]) -> int:
    status = quick.run(words)
    if status is not None:
        return status
    if words[:1] == ["__complete"]:
        from slurmgen.cli.commands import completion

        return completion.complete(words[1:])
    from slurmgen.cli import parser

    try:
        parser.app()(prog_name="slurmgen")
    except OSError as error:
        # Help is Typer's to print.
        if error.errno != errno.ENOSPC:
            raise
        raise report.stdout_refused(error) from error
    return EXIT_OK
