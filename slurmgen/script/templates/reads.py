"""Which `vars` of a job file its template reads: one that none reads is a mistake in writing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from slurmgen.errors import Refusal, Refusals
from slurmgen.resources import templates_dir

if TYPE_CHECKING:
    import jinja2

    from slurmgen.script.plan import JobPlan

_BUILTIN = "slurmgen/"


def check_all_read(plan: JobPlan, template: str, environment: jinja2.Environment) -> None:
    """Raises Refusals with every variable that is given and never read."""
    from difflib import get_close_matches

    read = _names(template, environment)
    if read is None:
        return
    problems = []
    for name, _ in plan.vars:
        if name in read:
            continue
        close = get_close_matches(name, sorted(read), n=1)
        refusal = Refusal(
            f"no template reads vars.{name}",
            why=f"the template {plan.template} and those it extends and includes read "
            + (", ".join(sorted(read)) or "none"),
            fix=f"write {close[0]}"
            if close
            else "remove it; what the program should find in its environment goes under env:",
            key=("vars", name),
        )
        problems.append(refusal)
    if problems:
        raise Refusals(problems)


def _names(template: str, environment: jinja2.Environment) -> set[str] | None:
    """What `template`, and what it extends, includes and imports, reads as vars.NAME.

    None where that can't be known: where one goes through all of them, or chooses by a
    variable what it includes.
    """
    from jinja2 import nodes

    names: set[str] = set()
    waiting, seen = [template], set()
    while waiting:
        name = waiting.pop()
        # The built-in ones know of none.
        if name in seen or name.startswith(_BUILTIN):
            continue
        seen.add(name)
        text, path, _ = cast("Any", environment.loader).get_source(environment, name)
        if path is not None and str(path).startswith(str(templates_dir())):
            continue
        tree = environment.parse(text)
        attributes = {id(node.node): node.attr for node in tree.find_all(nodes.Getattr)}
        for node in tree.find_all(nodes.Name):
            if node.name == "vars":
                if id(node) not in attributes:
                    return None
                names.add(attributes[id(node)])
        for kind in (nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport):
            for other in tree.find_all(kind):
                named = first = cast("Any", other).template
                if isinstance(first, nodes.Concat):
                    first = first.nodes[0]
                if not isinstance(first, nodes.Const) or not isinstance(first.value, str):
                    return None
                if first is not named and not first.value.startswith(_BUILTIN):
                    return None
                waiting.append(first.value)
    return names
