"""The table of verbs as a parser of Typer's, which refuses what is wrong and says what was meant.

Typer reads the parameters of functions. Here a verb's function is made from the table: its
signature is what the verb takes, and all it does is to call the verb with what was given.
"""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from slurmgen import __version__
from slurmgen.cli import helptext, report, verbs
from slurmgen.cli.quick import with_check_value
from slurmgen.cli.verbs import REQUIRED, Argument, Option

if TYPE_CHECKING:
    from collections.abc import Callable

    from slurmgen.cli.verbs import Verb


class _Help:
    """Help and usage in our own words: the same with every version of Typer, and in the manual."""

    def get_help(self, ctx: Any) -> str:
        return helptext.text(_page(ctx.command_path), helptext.columns())

    def get_usage(self, ctx: Any) -> str:
        return f"Usage: {_page(ctx.command_path).usage}"


class _Command(_Help, TyperCommand):
    """A verb that does something."""


class _Group(_Help, TyperGroup):
    """A verb that has others below it."""


class _Render(_Command):
    """`render`, whose --check may stand alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_check_value(args))


def _page(path: str) -> helptext.Page:
    verb, _ = verbs.called(path.split()[1:])
    return helptext.page(verb, path)


def app() -> typer.Typer:
    """The parser of all verbs."""
    return _group(
        verbs.ALL,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        # `completion` is a command of its own.
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def tree() -> Any:
    """All commands as Typer has them."""
    return typer.main.get_command(app())


def _group(group: Verb, **settings: Any) -> typer.Typer:
    found = typer.Typer(cls=_Group, no_args_is_help=True, **settings)
    if group is verbs.ALL:
        found.callback()(_function(group, _nothing))
    for verb in group.verbs:
        if verb.verbs:
            found.add_typer(_group(verb), name=verb.name)
            continue
        command = found.command(
            verb.name,
            cls=_Render if verb is verbs.RENDER else _Command,
            help=verb.summary,
            context_settings={"allow_interspersed_args": not verb.rest_is_its_own},
        )
        command(_function(verb, _calling(verb)))
    return found


def _calling(verb: Verb) -> Callable[..., None]:
    many = {parameter.name for parameter in verb.parameters if parameter.many}

    def call(**values: Any) -> None:
        given = {k: tuple(v or ()) if k in many else v for k, v in values.items()}
        raise typer.Exit(verb.run(given))

    return call


def _nothing(**_: Any) -> None:
    """What the options of `slurmgen` itself do is done already."""


def _show_version(wanted: bool) -> None:
    if wanted:
        report.out(f"slurmgen {__version__}\n")
        raise typer.Exit


def _function(verb: Verb, call: Callable[..., None]) -> Callable[..., None]:
    """A function that takes what the verb takes."""

    def function(**values: Any) -> None:
        call(**values)

    parameters = [_parameter(parameter) for parameter in verb.parameters]
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return function


def _parameter(given: Argument | Option) -> Parameter:
    kind: Any = str if isinstance(given, Argument) else given.type
    default = given.default
    if isinstance(given, Argument):
        info = typer.Argument(metavar=given.metavar, help=given.help)
    elif given is verbs.VERSION:
        info = typer.Option(*given.flags, help=given.help, is_eager=True, callback=_show_version)
        kind, default = bool, False
    elif given.is_flag:
        flags = (*given.flags[:-1], f"{given.flags[-1]}/{given.off}") if given.off else given.flags
        info = typer.Option(*flags, help=given.help)
        kind, default = bool, bool(default)
    else:
        info = typer.Option(*given.flags, metavar=given.metavar, help=given.help, min=given.least)
    if given.many:
        kind, default = list[str], default or None
    if default is None:
        kind = kind | None
    return Parameter(
        given.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if default is REQUIRED else default,
        annotation=Annotated[kind, info],
    )
