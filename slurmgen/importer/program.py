"""The code of a script -> Parts, where it is what a job file's own keys say.

That is: set-up (modules, an environment), variables, some commands, and last one program,
started by srun, by torchrun or alone. Nothing else is taken: what a launch block of ours
would start in another way, or with other words, is kept as it stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.importer import nodes
from slurmgen.importer.launch import started
from slurmgen.importer.nodes import source, variables, walk
from slurmgen.importer.parts import Parts
from slurmgen.importer.setup import RANKS, SetUp, Statement
from slurmgen.shell.syntax import parse

if TYPE_CHECKING:
    from tree_sitter import Node

    from slurmgen.importer.started import Started
    from slurmgen.script import BatchScript

# Names that the rendered script has itself.
_OURS = frozenset("command first_node init task commas".split())
# A step of the script's own, another job, what outlives the last command or counts lines.
_NOT_BEFORE = re.compile(
    r"\b(srun|mpirun|mpiexec|sbatch|salloc|exec|wait|torchrun|accelerate|deepspeed|coproc|"
    r"disown|nohup|BASH_SOURCE|LINENO|BASH_LINENO|FUNCNAME|SECONDS)\b"
)
# They don't fail, or the program could do nothing where they do.
_HARMLESS = frozenset("# echo printf date hostname pwd true : export unset cd mkdir".split())
_SETS = frozenset("read mapfile readarray getopts printf local declare typeset".split())
# Variables that Slurm sets only where one of the options is given, as it always is in a
# rendered script.
_COUNTS = (
    ("SLURM_NTASKS", "ntasks", "ntasks-per-node"),
    ("SLURM_NPROCS", "ntasks", "ntasks-per-node"),
    ("SLURM_NTASKS_PER_NODE", "ntasks-per-node"),
)
# More than anybody would want to see in a job file's keys.
_MOST_STATEMENTS = 400


class _NotIdiomaticError(Exception):
    """The code is something else than a job file's keys say."""


def read(script: BatchScript, first_line: int) -> Parts | None:
    """The parts of the code from `first_line` on; None where it is to be kept as it stands."""
    if first_line > len(script.lines):
        return None
    offset = script.offset(first_line)
    code = script.text[offset:]
    root = parse(code)
    if root is None or root.has_error or root.child_count > _MOST_STATEMENTS:
        return None
    try:
        return _Reader(script, code, root, offset).read()
    except _NotIdiomaticError:
        return None


class _Reader:
    def __init__(self, script: BatchScript, code: str, root: Node, offset: int) -> None:
        self.script = script
        self.code = code
        self.root = root
        self.offset = offset
        self.setup = SetUp(code)

    def read(self) -> Parts:
        self.refuse_what_a_launch_would_change()
        statements, comments = self.statements()
        if not statements:
            raise _NotIdiomaticError
        *before, last = statements
        first_command: Statement | None = None
        for statement in before:
            above = self.comments_over(statement, comments)
            # From the first command on, everything is one, in its order.
            if first_command is None and not self.setup.lift(statement, above):
                first_command = statement
                self.setup.note("commands", above)
        self.setup.note("command", self.comments_over(last, comments))
        self.setup.note("end", tuple(source(c.node, self.code) for c in comments))
        text = self.commands(first_command, before[-1]) if first_command is not None else ""
        program = started(
            self.script,
            self.offset + last.start,
            self.offset + last.end,
            last.node.type,
            # A job file has one Python: the container's or another one.
            in_container=not self.setup.found.keys() & {"venv", "conda"},
        )
        if program is None or not set(program.needs) <= self.setup.options:
            raise _NotIdiomaticError
        self.refuse_what_a_task_would_miss(program)
        return self.parts(program, text)

    def statements(self) -> tuple[list[Statement], list[Statement]]:
        """The statements of the top level, and the comments among them."""
        statements: list[Statement] = []
        comments: list[Statement] = []
        for node in self.root.children:
            line, _ = self.script.position(self.offset + node.start_byte)
            found = Statement(node, node.start_byte, node.end_byte, line)
            if node.type == "comment":
                comments.append(found)
            elif node.is_named:
                statements.append(found)
            elif node.type not in (";", "\n"):
                raise _NotIdiomaticError
        return statements, comments

    def comments_over(self, statement: Statement, comments: list[Statement]) -> tuple[str, ...]:
        """The comments before a statement, or behind it on its line, that no other has taken."""
        line_end = self.code.find("\n", statement.end)
        line_end = len(self.code) if line_end < 0 else line_end
        mine = [c for c in comments if c.start < statement.start]
        mine += [c for c in comments if statement.end <= c.start < line_end]
        for comment in mine:
            comments.remove(comment)
        return tuple(source(c.node, self.code) for c in mine)

    def refuse_what_a_launch_would_change(self) -> None:
        """Arguments of the script, what runs behind its back, and names of the launch block."""
        for node in walk(self.root):
            if node.type == "&":
                raise _NotIdiomaticError
            if node.type == "command" and node.children[0].type == "variable_assignment":
                raise _NotIdiomaticError
            name = node.child_by_field_name("name") or node.child_by_field_name("variable")
            if (
                node.type in ("function_definition", "variable_assignment", "for_statement")
                and name is not None
                and source(name, self.code) in _OURS
            ):
                raise _NotIdiomaticError
        request = self.script.requests[0]
        for variable, *options in _COUNTS:
            if not request.gives(*options) and re.search(rf"\b{variable}\b", self.code):
                raise _NotIdiomaticError
        if any(map(nodes.is_positional, variables(self.root, self.code))):
            raise _NotIdiomaticError

    def commands(self, first: Statement, last: Statement) -> str:
        """The text of `setup.commands`, up to the comment behind the last of them."""
        behind = re.compile(r"[ \t]*#[^\n]*").match(self.code, last.end)
        text = self.code[first.start : behind.end() if behind is not None else last.end].rstrip()
        if _NOT_BEFORE.search(text) or any(re.search(rf"\b{name}\b", text) for name in RANKS):
            raise _NotIdiomaticError
        return f"{self.shell_options(text)}{text}\n"

    def shell_options(self, text: str) -> str:
        """Lines for the commands where the script's own options differ from the job's."""
        given = self.setup.options
        firsts = {line.split()[0] for line in text.split("\n") if line.split()}
        lines = []
        if "errexit" not in given and not firsts <= _HARMLESS:
            lines.append("set +e")
        if "pipefail" not in given and "|" in text:
            lines.append("set +o pipefail")
        if "nounset" in given:
            lines.append("set -u")
        return "".join(f"{line}\n" for line in lines)

    def refuse_what_a_task_would_miss(self, program: Started) -> None:
        """Functions, and variables that the script sets and does not export."""
        exported = {variable.name for variable in self.setup.env}
        own: set[str] = set()
        for node in walk(self.root):
            if node.type == "variable_assignment" and node.parent is not None:
                name = source(node.named_children[0], self.code).partition("[")[0]
                is_export = (
                    node.parent.type == "declaration_command"
                    and node.parent.children[0].type == "export"
                )
                (exported if is_export else own).add(name)
            elif node.type in ("for_statement", "select_statement", "function_definition"):
                found = node.child_by_field_name("name") or node.child_by_field_name("variable")
                own.add(source(found, self.code) if found is not None else "")
            elif node.type == "command" and source(node.children[0], self.code) in _SETS:
                own.update(source(child, self.code) for child in node.children[1:])
        used = {*program.variables, *self.setup.rank_names}
        given = {name for name in RANKS for text in self.setup.ranks if f"{name}=" in text}
        if "MASTER_ADDR" in self.setup.found:
            given.add("MASTER_ADDR")
        if used & RANKS - (given if program.launcher == "srun" else set()):
            raise _NotIdiomaticError
        if used & (own - exported) or program.name in own:
            raise _NotIdiomaticError

    def parts(self, program: Started, commands: str) -> Parts:
        setup = self.setup
        found, command, dropped = setup.found, program.text, list(setup.dropped)
        has_address = "MASTER_ADDR" in found or setup.ranks
        if has_address and program.launcher == "plain":
            raise _NotIdiomaticError
        if setup.ranks and program.launcher == "torchrun":
            line = self.script.position(self.offset)[0]
            dropped.append((line, "torchrun sets MASTER_ADDR and MASTER_PORT by itself"))
        elif setup.ranks:
            if program.words:
                raise _NotIdiomaticError
            command = "\n".join([*setup.ranks, command])
        if "hook" in found and "conda" not in found:
            raise _NotIdiomaticError
        if setup.first:
            keys = [key for key in ("modules", "venv", "conda", "commands") if key in setup.above]
            key = keys[0] if keys else "launcher"
            setup.above[key] = (*setup.first, *setup.above.get(key, ()))
        return Parts(
            launcher=program.launcher,
            command="" if program.words else command + "\n" * ("\n" in command),
            words=program.words,
            rdzv=program.rdzv,
            nproc=program.nproc,
            purge="purge" in found,
            use=tuple(setup.use),
            load=tuple(setup.load),
            venv=found.get("venv", ""),
            conda=found.get("conda", ""),
            container=program.container,
            env=tuple(setup.env),
            commands=commands,
            above=setup.above,
            dropped=tuple(dropped),
        )
