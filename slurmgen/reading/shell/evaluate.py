"""Go through shell code in order: what is set, what runs, in which shell.

Branches are all taken, loops once, functions where they are first called. What is assigned
last counts; a variable that a loop runs over stays a variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.reading.shell import expansion
from slurmgen.reading.shell.commands import (
    DEEPEST,
    MOST_COMMANDS,
    MOST_WORDS,
    Command,
    Context,
    ShellProgram,
)
from slurmgen.reading.shell.expansion import Scope
from slurmgen.reading.shell.redirects import Redirections, read_redirect
from slurmgen.reading.shell.state import ShellState
from slurmgen.reading.shell.syntax import parse, parsed_end
from slurmgen.reading.shell.text import ShellText
from slurmgen.reading.shell.variables import Assignment, Variables
from slurmgen.reading.shell.words import BATCH, Word, literal_word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tree_sitter import Node

    from slurmgen.reading.shell.commands import Redirect

_MOST_STATEMENTS = 20_000
# Pieces of words that variables may become, in all.
_MOST_EXPANDED = 50_000
_DECLARES = ("export", "declare", "typeset", "local", "readonly")


def evaluate(
    code: ShellText,
    *,
    where: str = BATCH,
    variables: Mapping[str, Assignment] | None = None,
    positional: Sequence[Word] | None = None,
    options: frozenset[str] = frozenset(),
    context: Context | None = None,
) -> ShellProgram:
    """The commands of `code`; never raises.

    variables: what the shell starts with. positional: `$1` and on.
    """
    walk = _Walk(code, Variables(variables), options)
    walk.positional = tuple(positional) if positional is not None else None
    root = parse(code.text)
    if root is not None:
        walk.statements(root.children, (context or Context())._replace(where=where), 0)
        walk.uncalled(where)
        if parsed_end(code.text) < len(code.text):
            walk.stop(parsed_end(code.text))
            # What is open there may be closed behind it.
            walk.errors.clear()
    else:
        walk.stop(0)
    return ShellProgram(
        tuple(walk.commands),
        tuple(walk.assignments),
        {name: code.offset(node.start_byte) for name, node in walk.functions.items()},
        tuple(walk.errors),
        walk.stopped,
    )


def _is_itself(literal: str | None) -> bool:
    """Whether a word is just its text: not `{0..3}` or `*.yaml`, which become several."""
    return literal is not None and not any(sign in literal for sign in "{*?[")


class _Walk(ShellState):
    def __init__(self, code: ShellText, variables: Variables, options: frozenset[str]) -> None:
        super().__init__(variables, options)
        self.code = code
        self.commands: list[Command] = []
        self.functions: dict[str, Node] = {}
        self.called: set[str] = set()
        self.handlers: set[str] = set()
        self.errors: list[tuple[int, int]] = []
        self.stopped: int | None = None
        self._left = _MOST_STATEMENTS
        self._expanded = _MOST_EXPANDED

    def scope(self, context: Context, depth: int) -> Scope:
        inner = context._replace(substitution=True, background=False, fed=False)

        def substitute(node: Node) -> None:
            self.branch(node.children[1:-1], inner, depth + 1)

        return Scope(
            self.code,
            context.where,
            self.variables,
            self.positional,
            substitute,
            self.afford,
            self.definition,
        )

    def stop(self, index: int) -> None:
        """Nothing is looked at from here on; what counts is where that was first so."""
        if self.stopped is None:
            self.stopped = self.code.offset(index)

    def afford(self, weight: int) -> bool:
        self._expanded -= weight
        return self._expanded >= 0

    def definition(self, name: str) -> Node | None:
        """The definition of a function which is handed to another shell, and called there."""
        self.called.add(name)
        return self.functions.get(name)

    def branch(self, nodes: Sequence[Node], context: Context, depth: int) -> None:
        """Statements of a shell of their own: what they set is lost behind them."""
        before = self.variables, self.options
        self.statements(nodes, context, depth)
        self.variables, self.options = before

    def uncalled(self, where: str) -> None:
        """Functions that nothing calls by name: handlers of traps, or called by other files."""
        for name, node in list(self.functions.items()):
            if name not in self.called:
                context = Context(where, function=name, handler=name in self.handlers)
                self.called.add(name)
                self.branch(node.children[-1:], context, 1)

    def statements(self, nodes: Sequence[Node], context: Context, depth: int) -> None:
        if depth > DEEPEST:
            if nodes:
                self.stop(nodes[0].start_byte)
            return
        for at, node in enumerate(nodes):
            self._left -= 1
            if self._left < 0 or len(self.commands) >= MOST_COMMANDS:
                self.stop(node.start_byte)
                return
            behind = nodes[at + 1].type if at + 1 < len(nodes) else ""
            inner = self.behind(node, context) if behind == "&" else context
            self.statement(node, inner, depth)

    def behind(self, node: Node, context: Context) -> Context:
        """The context of a statement that is put into the background."""
        return context._replace(background=True, job=self.code.offset(node.start_byte))

    def statement(self, node: Node, context: Context, depth: int) -> None:
        kind = node.type
        if kind == "command":
            self.command(node, (), context, depth)
        elif kind == "redirected_statement":
            self.redirected(node, context, depth)
        elif kind in ("variable_assignment", "variable_assignments"):
            parts = node.children if kind.endswith("s") else [node]
            for part in parts:
                if part.type == "variable_assignment":
                    self.assign(part, context, depth, exported=None)
        elif kind == "declaration_command":
            self.declare(node, context, depth)
        elif kind == "unset_command":
            self.unset(node, context, depth)
        elif kind == "function_definition":
            name = node.child_by_field_name("name")
            if name is not None:
                self.functions[expansion.source(name, self.scope(context, depth))] = node
        elif kind == "pipeline":
            parts = node.named_children
            for part in parts:
                is_last, is_first = part == parts[-1], part == parts[0]
                inner = context._replace(
                    piped=context.piped or not is_last, fed=context.fed or not is_first
                )
                self.branch([part], inner, depth + 1)
        elif kind == "list":
            self.list_(node, context, depth)
        elif kind == "subshell":
            self.branch(node.children[1:-1], context._replace(subshell=True), depth + 1)
        elif kind == "negated_command":
            self.statements(node.children, context._replace(condition=True), depth + 1)
        elif kind in ("for_statement", "select_statement"):
            self.loop(node, context, depth)
        elif kind in ("while_statement", "c_style_for_statement"):
            inner = context._replace(loop=True, conditional=True)
            self.parts(node, inner, depth)
        elif kind in ("if_statement", "elif_clause", "case_statement"):
            self.parts(node, context._replace(conditional=True), depth)
        elif kind == "ERROR" or node.is_missing:
            scope = self.scope(context, depth)
            self.errors.append(expansion.span(node, scope))
            self.statements(node.children, context, depth + 1)
        elif kind == "test_command":
            for inner_node in expansion.descend(node, "command_substitution"):
                self.scope(context, depth).substitute(inner_node)
        elif node.child_count and kind not in ("heredoc_body", "comment", "word", "string"):
            self.statements(node.children, context, depth + 1)

    def parts(self, node: Node, context: Context, depth: int) -> None:
        """A compound statement, its test told from its body."""
        for at, child in enumerate(node.children):
            is_test = node.field_name_for_child(at) == "condition"
            behind = node.children[at + 1].type if at + 1 < len(node.children) else ""
            inner = context._replace(condition=is_test) if is_test else context
            if behind == "&":
                inner = self.behind(child, inner)
            self.statements([child], inner, depth + 1)

    def list_(self, node: Node, context: Context, depth: int) -> None:
        # Left-nested, one level for each && and ||: a long chain must not use up the depth.
        chain: list[tuple[Node, str]] = []
        operator = ""
        while node.type == "list" and node.child_count >= 3:
            chain.append((node.children[-1], operator))
            operator = node.children[-2].type
            node = node.children[0]
        chain.append((node, operator))
        first = True
        for part, behind in reversed(chain):
            before = len(self.commands)
            inner = context if first else context._replace(conditional=True)
            self.statements([part], inner, depth + 1)
            if behind == "||":
                self.commands[before:] = [
                    command._replace(caught=True) for command in self.commands[before:]
                ]
            first = False

    def loop(self, node: Node, context: Context, depth: int) -> None:
        scope = self.scope(context, depth)
        name = node.child_by_field_name("variable")
        values = [
            word
            for at, child in enumerate(node.children)
            if node.field_name_for_child(at) == "value"
            for word in expansion.fields(child, scope)
        ]
        if name is not None:
            variable = expansion.source(name, scope)
            self.forget(variable)
            if len(values) == 1 and _is_itself(values[0].literal):
                start, end = expansion.span(name, scope)
                self.set_(Assignment(variable, values[0], False, context.where, start, end))
        body = node.child_by_field_name("body")
        if body is not None:
            self.statements(body.children, context._replace(loop=True, conditional=True), depth + 1)

    def redirected(self, node: Node, context: Context, depth: int) -> None:
        scope = self.scope(context, depth)
        found = Redirections([], [], [])
        for at, child in enumerate(node.children):
            if node.field_name_for_child(at) == "redirect":
                read_redirect(child, scope, found)
        piped = any(is_pipe for _, is_pipe in found.later)
        inner = context._replace(piped=context.piped or piped)
        body = node.child_by_field_name("body")
        if body is not None and body.type == "command":
            self.command(body, tuple(found.redirects), inner, depth, found.arguments)
        elif body is not None:
            self.statements([body], inner, depth + 1)
        for part, is_pipe in found.later:
            self.statements([part], context._replace(fed=is_pipe or context.fed), depth + 1)

    def command(
        self,
        node: Node,
        redirects: tuple[Redirect, ...],
        context: Context,
        depth: int,
        more: Sequence[Node] = (),
    ) -> None:
        lines = self.lines_of(node)
        for at, children in enumerate(lines):
            last = at == len(lines) - 1
            self.simple(children, redirects if last else (), context, depth, more if last else ())

    def lines_of(self, node: Node) -> list[list[Node]]:
        """The children of a command, parted where an unescaped line end lies between two.

        To the grammar, `A=1 B=2` on a line of its own is a prefix of the next line's command,
        and behind a syntax error whole lines become arguments of the line before.
        """
        text = self.code.text
        lines: list[list[Node]] = [[]]
        end = node.start_byte
        for child in node.children:
            between = text[end : child.start_byte]
            if lines[-1] and "\n" in between.replace("\\\n", ""):
                lines.append([])
            lines[-1].append(child)
            end = child.end_byte
        return lines

    def simple(
        self,
        children: list[Node],
        redirects: tuple[Redirect, ...],
        context: Context,
        depth: int,
        more: Sequence[Node],
    ) -> None:
        scope = self.scope(context, depth)
        given = Redirections(list(redirects), [], [])
        prefix: list[Assignment] = []
        words: list[Word] = []
        alone = all(child.type == "variable_assignment" for child in children)
        for child in children:
            if child.type == "variable_assignment":
                if alone:
                    self.assign(child, context, depth, exported=None)
                    continue
                found = self.read_assignment(child, scope, context, exported=True)
                if found is not None:
                    prefix.append(found)
            elif child.type.endswith("_redirect"):
                read_redirect(child, scope, given)
            elif child.type == "ERROR":
                self.errors.append(expansion.span(child, scope))
            elif child.type == "command_name":
                name = child.children[0] if child.child_count == 1 else child
                words += expansion.fields(name, scope)
            elif len(words) > MOST_WORDS:
                self.stop(child.start_byte)
                break
            elif child.is_named:
                words += expansion.fields(child, scope)
        for child in (*given.arguments, *more):
            words += expansion.fields(child, scope)
        if not words:
            return
        start, _ = expansion.span(children[0], scope)
        _, end = expansion.span(children[-1], scope)
        command = Command(
            tuple(words),
            tuple(prefix),
            tuple(given.redirects),
            start,
            end,
            context,
            self.variables,
            self.options,
        )
        self.commands.append(command)
        self.builtin(command, context, depth)

    def builtin(self, command: Command, context: Context, depth: int) -> None:
        name = command.name
        if name in self.functions:
            self.call(name, command, context, depth)
        elif name == "set":
            self.set_options([word.guess for word in command.words[1:]])
        elif name == "unset":
            for word in command.words[1:]:
                self.forget(word.guess)
        elif name in ("export", "readonly", "declare") and len(command.words) > 1:
            for word in command.words[1:]:
                self.export(word.guess)
        elif name == "eval":
            self.eval_(command, context, depth)
        elif name == "trap" and len(command.words) > 2:
            first = command.words[1].guess.split()
            self.handlers.update(first[:1])
        elif name in ("read", "mapfile", "readarray"):
            self.read_(command)

    def read_(self, command: Command) -> None:
        names = [word.literal for word in command.words[1:]]
        for name in names:
            if name and not name.startswith("-"):
                self.forget(name)
        body = next((r.body for r in command.redirects if r.body is not None), None)
        # `read -r -d '' name <<'EOF'` takes all of the here-document.
        if body is not None and body.text and "" in names and names[-1] and "-d" in names:
            start = body.offset(0)
            value = body.word()
            self.set_(Assignment(names[-1], value, False, command.where, start, value.end))

    def call(self, name: str, command: Command, context: Context, depth: int) -> None:
        if name in self.called:
            return
        self.called.add(name)
        node = self.functions[name]
        before, self.positional = self.positional, command.words[1:]
        self.statements(node.children[-1:], context._replace(function=name), depth + 1)
        self.positional = before

    def eval_(self, command: Command, context: Context, depth: int) -> None:
        pieces = []
        for word in command.words[1:]:
            pieces += [*literal_word(" ", word.start, word.start).pieces, *word.pieces]
        code = ShellText.of_word(Word(tuple(pieces), command.start, command.end))
        root = parse(code.text) if depth < 10 else None
        if root is None or code.text.strip() == "":
            return
        outer, self.code = self.code, code
        self.statements(root.children, context, depth + 1)
        self.code = outer

    def declare(self, node: Node, context: Context, depth: int) -> None:
        scope = self.scope(context, depth)
        keyword = node.children[0].type if node.children else ""
        flags = [
            expansion.source(child, scope) for child in node.named_children if child.type == "word"
        ]
        exported: bool | None = None
        if keyword == "export" or any(f.startswith("-") and "x" in f for f in flags):
            exported = not any(f.startswith("-n") for f in flags)
        words = [literal_word(keyword, *expansion.span(node.children[0], scope))]
        for child in node.named_children:
            if child.type == "variable_assignment":
                self.assign(child, context, depth, exported=exported)
            elif child.type in ("variable_name", "word"):
                name = expansion.source(child, scope)
                if exported and child.type == "variable_name":
                    self.export(name)
                if "-f" in flags:
                    self.called.add(name)
                words += expansion.fields(child, scope)
            else:
                words += expansion.fields(child, scope)
        start, end = expansion.span(node, scope)
        if keyword in _DECLARES:
            self.commands.append(
                Command(tuple(words), (), (), start, end, context, self.variables, self.options)
            )

    def unset(self, node: Node, context: Context, depth: int) -> None:
        scope = self.scope(context, depth)
        start, end = expansion.span(node, scope)
        words = [literal_word("unset", start, start + 5)]
        for child in node.named_children:
            words += expansion.fields(child, scope)
            self.forget(expansion.source(child, scope))
        self.commands.append(
            Command(tuple(words), (), (), start, end, context, self.variables, self.options)
        )

    def assign(self, node: Node, context: Context, depth: int, *, exported: bool | None) -> None:
        found = self.read_assignment(node, self.scope(context, depth), context, exported=exported)
        if found is not None:
            self.set_(found)
