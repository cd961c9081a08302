"""The code of a script -> Parts, where it is what a job file's own keys say.

That is: set-up (modules, an environment), variables, some commands, and last one program,
started by srun, by torchrun or alone. Nothing else is taken: what a launch block of ours
would start in another way, or with other words, is kept as it stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.importer.code_as_keys import Parts
from slurmgen.importer.launch import shape_of, started
from slurmgen.importer.nodes import (
    commands_in,
    exported_names,
    is_positional,
    names_used,
    set_names,
    source,
    variables,
    walk,
)
from slurmgen.importer.setup import RANKS, SetUp, Statement
from slurmgen.importer.started_program import NotIdiomaticError
from slurmgen.importer.whole_task import (
    block,
    is_for_files,
    is_work,
    leaves_threads_alone,
    with_options,
)
from slurmgen.launchers import AGENT
from slurmgen.reading.shell.options import parse_options
from slurmgen.reading.shell.srun import SRUN
from slurmgen.reading.shell.syntax import parse

if TYPE_CHECKING:
    from tree_sitter import Node

    from slurmgen.importer.started_program import Started
    from slurmgen.reading.script import BatchScript

# Names that the rendered script has itself.
_OURS = frozenset("command first_node init task commas".split())
# A step of the script's own, another job, or what outlives the last command.
_NOT_BEFORE = frozenset(
    """
    mpirun mpiexec sbatch salloc exec wait torchrun accelerate deepspeed coproc disown nohup
    """.split()
)
# What counts lines, or the script's own time.
_OF_SCRIPT = re.compile(r"\b(BASH_SOURCE|LINENO|BASH_LINENO|FUNCNAME|SECONDS)\b")
# They don't fail, or the program could do nothing where they do.
_HARMLESS = frozenset("# echo printf date hostname pwd true : export unset cd mkdir".split())
# An assignment that runs nothing.
_LITERAL = re.compile(r"\w+=[^$`(<]*(?:\$\{?\w+\}?[^$`(<]*)*")
# Variables that Slurm sets only where one of the options is given, as it always is in a
# rendered script.
_COUNTS = (
    ("SLURM_NTASKS", "ntasks", "ntasks-per-node"),
    ("SLURM_NPROCS", "ntasks", "ntasks-per-node"),
    ("SLURM_NTASKS_PER_NODE", "ntasks-per-node"),
)
# Not to be handed on by a variable.
_SHELL_OWN = ("IFS", "OPTIND", "OPTARG", "REPLY", "PIPESTATUS", "RANDOM", "SECONDS")
# More than anybody would want to see in a job file's keys.
_MOST_STATEMENTS = 400


def read(script: BatchScript, first_line: int) -> Parts:
    """The parts of the code from `first_line` on.

    Raises NotIdiomaticError where it is to be kept as it stands.
    """
    offset = script.offset(first_line) if first_line <= len(script.lines) else len(script.text)
    code = script.text[offset:]
    root = parse(code)
    if root is None or root.has_error or root.child_count > _MOST_STATEMENTS:
        raise NotIdiomaticError("the code can't be read as Bash")
    return _Reader(script, code, root, offset).read()


class _Names:
    """What the statements that stay commands set, and what they use."""

    def __init__(self) -> None:
        self.own: set[str] = set()
        self.used: set[str] = set()
        self._are_quiet = True
        self._foreign: set[str] = set()

    @property
    def are_still(self) -> bool:
        """Whether they only set variables of their own, or speak, by what is known."""
        return self._are_quiet and self._foreign <= self.own

    def add(self, node: Node, code: str) -> None:
        """One statement more."""
        names = set(variables(node, code))
        self.own.update(set_names(node, code))
        self.used |= names
        self._foreign |= {
            name for name in names if not name.startswith("SLURM_") and name not in ("HOME", "USER")
        }
        self._are_quiet = self._are_quiet and _is_quiet(node, code)


def _is_quiet(node: Node, code: str) -> bool:
    """Whether a statement is an assignment or speaks, and runs nothing else for it."""
    if node.type == "command" and source(node.children[0], code) in ("echo", "printf"):
        inside = set(re.findall(r"\$\(([^)]*)\)", source(node, code)))
        runs = any(inner.type == "command_substitution" for inner in walk(node))
        return not runs or inside <= {"date", "hostname"}
    if node.type in ("variable_assignment", "variable_assignments"):
        return not any("substitution" in inner.type for inner in walk(node))
    return False


class _Reader:
    def __init__(self, script: BatchScript, code: str, root: Node, offset: int) -> None:
        self.script = script
        self.code = code
        self.root = root
        self.offset = offset
        self.shape = shape_of(script.requests[0])
        # The one task of a job has what the batch shell exports; the launch block is not asked.
        self.setup = SetUp(
            code,
            script.requests[0],
            script.shebang_options,
            has_ranks=not self.shape.is_single,
        )
        # Statements of `setup.commands`.
        self.kept: list[Statement] = []
        self.names = _Names()
        # How many of the comments that were last asked for stand behind their statement.
        self.comments_behind = 0

    def read(self) -> Parts:
        self.refuse_what_a_launch_would_change()
        statements, comments = self.statements()
        if not statements:
            raise NotIdiomaticError("there is nothing below the directives")
        at = self.start_of_command(statements)
        before, tail = statements[:at], statements[at:]
        for statement in before:
            above = self.comments_over(statement, comments)
            is_next = not self.kept or self.kept[-1].number < statement.number - 1
            if is_next and "?" in variables(statement.node, self.code):
                raise NotIdiomaticError("the set-up asks for a status")
            can = self.may_lift(statement) or self.setup.is_of_ranks(statement)
            if can and self.setup.lift(statement, above):
                continue
            # Those behind it stand in the text of the commands.
            count = len(above) - self.comments_behind
            self.keep(statement._replace(above=above[:count], behind=above[count:]))
        program = self.program(tail)
        self.drop_what_only_the_launch_used(tail, program)
        over = self.comments_over(tail[0], comments)
        for statement in tail[1:]:
            self.comments_over(statement, comments)
        self.setup.note("command", over)
        self.setup.note("end", tuple(source(c.node, self.code) for c in comments))
        return self.parts(program, self.commands(program))

    def drop_what_only_the_launch_used(self, tail: list[Statement], program: Started) -> None:
        """Such as the first node's name, which `launcher: torchrun` is not told."""
        was_used = {name for s in tail for name in names_used(s.node, self.code)}
        was_used |= self.setup.dropped_names
        container = program.container.names if program.container is not None else ()
        is_used = {*program.variables, *container}
        for statement in reversed(self.kept):
            node = statement.node
            name = source(node.children[0], self.code)
            if (
                node.type == "variable_assignment"
                and name in was_used - is_used
                and self.setup.is_still(node)
                and not self.is_mentioned(name, statement)
            ):
                at = self.kept.index(statement)
                self.kept.remove(statement)
                if at < len(self.kept):
                    follower = self.kept[at]
                    above = (*statement.above, *statement.behind, *follower.above)
                    self.kept[at] = follower._replace(above=above)
                else:
                    self.setup.note("command", (*statement.above, *statement.behind))
                self.setup.dropped.append(
                    (statement.line, f"{name}, which only the launch line used, is left out")
                )

    def is_mentioned(self, name: str, statement: Statement) -> bool:
        """Whether another part of the set-up may use the variable."""
        texts = [source(s.node, self.code) for s in self.kept if s is not statement]
        texts += [*self.setup.ranks, *(variable.value for variable in self.setup.env)]
        return any(re.search(rf"\b{name}\b", text) for text in texts)

    def start_of_command(self, statements: list[Statement]) -> int:
        """Which statement is the first that a task runs."""
        last = len(statements) - 1
        if not self.shape.is_single:
            return last
        at = next(
            (s.number for s in statements if s.background or is_work(s.node, self.code)), last
        )
        # What can't be handed on, functions and arrays, goes with what uses it.
        while True:
            used = {name for s in statements[at:] for name in self.mentioned(s.node)}
            unknown = self.unknown(used)
            needed = [
                s.number
                for s in statements[:at]
                if used & self.own_to_shell(s.node) or (unknown and self.is_sourced(s.node))
            ]
            if not needed:
                return at
            at = min(needed)

    def unknown(self, names: set[str]) -> set[str]:
        """Those that the script does not set itself: of the environment, or of what it sources."""
        known = set(set_names(self.root, self.code)) | exported_names(self.root, self.code)
        return {
            name
            for name in names - known
            if name.isidentifier() and name.isupper() and not name.startswith("SLURM_")
        } - {"HOME", "USER", "PATH", "PWD", "TMPDIR", "HOSTNAME", *RANKS}

    def is_sourced(self, node: Node) -> bool:
        """Whether the statement may set variables that are not in it."""
        return any(
            name in ("source", ".", "eval") for name in commands_in(node, self.code)
        ) and not re.search(r"/activate\b|conda", source(node, self.code))

    def mentioned(self, node: Node) -> set[str]:
        """Names of variables that are expanded, and of commands that are run."""
        names = names_used(node, self.code)
        for inner in walk(node):
            if inner.type == "command_name":
                names.add(source(inner, self.code))
        # A trap names a function in its text.
        return names | set(re.findall(r"trap ['\"]?(\w+)", source(node, self.code)))

    def own_to_shell(self, node: Node) -> set[str]:
        """Functions and arrays that are set in a statement."""
        found: set[str] = set()
        for inner in walk(node):
            name = inner.child_by_field_name("name")
            if inner.type == "function_definition" and name is not None:
                found.add(source(name, self.code))
            elif inner.type == "variable_assignment":
                value = inner.child_by_field_name("value")
                target = source(inner.named_children[0], self.code)
                if (value is not None and value.type == "array") or "[" in target:
                    found.add(target.partition("[")[0])
            elif inner.type == "command" and source(inner.children[0], self.code) in (
                "mapfile", "readarray",
            ):  # fmt: skip
                found |= {source(child, self.code) for child in inner.children[1:]}
            elif inner.type == "declaration_command" and source(
                inner.children[0], self.code
            ) not in ("export", "readonly"):
                found |= set(re.findall(r"\w+", source(inner, self.code)))
        return found

    def program(self, tail: list[Statement]) -> Started:
        """What the statements behind the set-up start."""
        last = tail[0]
        span = self.offset + last.start, self.offset + tail[-1].end
        reason = None
        if len(tail) == 1 and not last.background:
            try:
                found = started(
                    self.script,
                    *span,
                    last.node.type,
                    # A job file has one Python: the container's or another one.
                    in_container=not self.setup.found.keys() & {"venv", "conda"},
                )
                if not set(found.needs) <= self.options_at(span[0]):
                    raise NotIdiomaticError("a pipe ends with the status of its last command")
                self.refuse_what_a_task_would_miss(found)
            except NotIdiomaticError as error:
                reason = error
            else:
                return found
        if not self.shape.is_single:
            steps = [s for s in self.kept if "srun" in commands_in(s.node, self.code)]
            if reason is None or (steps and "srun" not in commands_in(last.node, self.code)):
                reason = NotIdiomaticError("what follows the launch line has no place")
            raise reason
        behind = re.compile(r"[ \t]*&?[ \t]*(?:#[^\n]*)?").match(self.script.text, span[1])
        if behind is not None:
            span = span[0], behind.end()
        found = block(self.script, [s.node for s in tail], span, self.offset)
        self.refuse_what_a_task_would_miss(found)
        # A comment above an option of `set` has no other place.
        is_one = len(tail) == 1 and last.node.type == "command" and not last.background
        text = found.text.rstrip()
        if not is_one or text.startswith("exec"):
            traced = re.search(r"^\s*set -\w*x", self.code[: last.start], re.MULTILINE)
            text = with_options(text, self.options_at(span[0]), traced=traced is not None)
        sets_threads = "OMP_NUM_THREADS" in self.code
        if leaves_threads_alone(text) and self.shape.cpus is not None and not sets_threads:
            text = f"unset OMP_NUM_THREADS\n{text}"
        return found._replace(text=text)

    def options_at(self, offset: int) -> frozenset[str]:
        """The options of `set` that are in force at a place of the script."""
        later = [c for c in self.script.shell.commands if c.start >= offset]
        if not later:
            return frozenset(self.setup.options)
        return min(later, key=lambda command: command.start).options

    def keep(self, statement: Statement) -> None:
        """Leave a statement among the commands."""
        self.kept.append(statement)
        self.names.add(statement.node, self.code)

    def may_lift(self, statement: Statement) -> bool:
        """Whether the statement comes to the same before those that stay commands."""
        if not self.kept:
            return True
        if not self.names.are_still:
            return False
        before = self.code[: statement.start].rpartition("\n")[2]
        behind = self.code[statement.end :].partition("\n")[0].partition("#")[0]
        if before.strip() or behind.strip():
            return False
        mine = set(set_names(statement.node, self.code))
        used = set(variables(statement.node, self.code))
        return not (self.names.own & (used | mine) or self.names.used & mine)

    def statements(self) -> tuple[list[Statement], list[Statement]]:
        """The statements of the top level, and the comments among them."""
        statements: list[Statement] = []
        comments: list[Statement] = []
        for node in self.root.children:
            line, _ = self.script.position(self.offset + node.start_byte)
            found = Statement(node, node.start_byte, node.end_byte, line, len(statements))
            if node.type == "comment":
                comments.append(found)
            elif node.is_named:
                statements.append(found)
            elif node.type == "&" and self.shape.is_single:
                statements[-1] = statements[-1]._replace(background=True)
            elif node.type not in (";", "\n"):
                raise NotIdiomaticError("several programs run at the same time")
        return statements, comments

    def comments_over(self, statement: Statement, comments: list[Statement]) -> tuple[str, ...]:
        """The comments before a statement, or behind it on its line, that no other has taken."""
        line_end = self.code.find("\n", statement.end)
        line_end = len(self.code) if line_end < 0 else line_end
        mine = [c for c in comments if c.start < statement.start]
        behind = [c for c in comments if statement.end <= c.start < line_end]
        self.comments_behind = len(behind)
        mine += behind
        for comment in mine:
            comments.remove(comment)
        return tuple(source(c.node, self.code) for c in mine)

    def refuse_what_a_launch_would_change(self) -> None:
        """Names of the launch block, and what only the script's own shell has."""
        for node in walk(self.root):
            if node.type == "&" and not self.shape.is_single:
                raise NotIdiomaticError("several programs run at the same time")
            name = node.child_by_field_name("name") or node.child_by_field_name("variable")
            if (
                node.type in ("function_definition", "variable_assignment", "for_statement")
                and name is not None
                and source(name, self.code) in _OURS
            ):
                raise NotIdiomaticError(f"{source(name, self.code)} is a name of the launch block")
        request = self.script.requests[0]
        spoken = "".join(
            source(node, self.code)
            for node in self.root.named_children
            if node.type == "command" and source(node.children[0], self.code) in ("echo", "printf")
        )
        for variable, *options in _COUNTS:
            pattern = re.compile(rf"\b{variable}\b")
            count = len(pattern.findall(self.code))
            if count and not request.gives(*options):
                if count > len(pattern.findall(spoken)):
                    raise NotIdiomaticError(f"{variable} is set where --{options[-1]} is written")
                line = self.script.position(self.offset)[0]
                self.setup.dropped.append((line, f"{variable}, which is shown, is set now"))
        names = set(variables(self.root, self.code))
        if names & {"0", "-", "_"}:
            raise NotIdiomaticError("the script looks at itself ($0)")

    def commands(self, program: Started) -> str:
        """The text of `setup.commands`, up to the comment behind the last of them."""
        runs: list[list[Statement]] = []
        for statement in self.kept:
            if runs and runs[-1][-1].number == statement.number - 1:
                runs[-1].append(statement)
            else:
                runs.append([statement])
        texts: list[str] = []
        for run in runs:
            # Those over the others of a run stand in its text.
            if run is runs[0]:
                self.setup.note("commands", run[0].above)
            else:
                texts += run[0].above
            behind = re.compile(r"[ \t]*#[^\n]*").match(self.code, run[-1].end)
            end = behind.end() if behind is not None else run[-1].end
            texts.append(self.code[run[0].start : end].rstrip())
        text = "\n".join(texts)
        if text:
            self.refuse_before_the_launch(text)
            text = self.shell_options(text) + text
        texts = [text] if text else []
        own = self.handed_on(program)
        if own:
            texts.append(f"# For the command, which does not pass them on.\nexport {' '.join(own)}")
        if self.has_arguments(program):
            if "ARGUMENTS" in self.code:
                raise NotIdiomaticError("ARGUMENTS is a variable of its own")
            texts.append('# Those of sbatch, for the command.\nexport ARGUMENTS="${*@Q}"')
        if program.exports:
            texts.append(f"# Options of srun.\nexport {' '.join(program.exports)}")
        return "".join(f"{text}\n" for text in texts)

    def refuse_before_the_launch(self, text: str) -> None:
        names = {name for kept in self.kept for name in commands_in(kept.node, self.code)}
        looks = _OF_SCRIPT.search(text)
        for name in sorted(names & _NOT_BEFORE) or ([looks[0]] if looks is not None else []):
            raise NotIdiomaticError(f"{name} stands before the launch line")
        if re.search(r"\bsrun\b", text) and not self.are_for_files():
            raise NotIdiomaticError("another step comes before the launch line")
        for name in RANKS:
            if not re.search(rf"\b{name}\b", text):
                continue
            if not self.shape.is_single and name not in self.setup.shown:
                raise NotIdiomaticError(f"{name} is set or used in the batch shell")
        if re.search(r"\bIFS=", text) and re.search(r"^\s*IFS=\S*\s*$", text, re.MULTILINE):
            raise NotIdiomaticError("IFS is changed for the launch block too")

    def are_for_files(self) -> bool:
        """Whether the steps before the launch only lay out files, whatever their environment."""
        if self.shape.is_single or not self.script.requests[0].gives("ntasks-per-node"):
            return False
        nodes = [n for kept in self.kept for n in walk(kept.node) if n.type == "command"]
        starts = {self.offset + node.start_byte for node in nodes}
        steps = [c for c in self.script.shell.commands if c.name == "srun" and c.start in starts]
        return len(steps) == sum("srun" in source(node, self.code) for node in nodes) and all(
            is_for_files(parse_options(step.words[1:], SRUN)) for step in steps
        )

    def handed_on(self, program: Started) -> list[str]:
        """Variables of the script's own that the command uses."""
        exported, own = self.own_names()
        return sorted(set(program.variables) & (own - exported))

    def has_arguments(self, program: Started) -> bool:
        return any(map(is_positional, program.variables))

    def shell_options(self, text: str) -> str:
        """Lines for the commands where the script's own options differ from the job's."""
        given = self.setup.options
        lines = []
        firsts = {line.split()[0] for line in text.split("\n") if line.split()}
        is_harmless = all(first in _HARMLESS or _LITERAL.fullmatch(first) for first in firsts)
        if "errexit" not in given and not is_harmless:
            lines.append("set +e")
        if "pipefail" not in given and "|" in text:
            lines.append("set +o pipefail")
        if "nounset" in given:
            lines.append("set -u")
        return "".join(f"{line}\n" for line in lines)

    def own_names(self) -> tuple[set[str], set[str]]:
        """What the set-up exports, and what it sets besides."""
        exported = {variable.name for variable in self.setup.env}
        own: set[str] = set()
        for statement in self.kept:
            exported |= exported_names(statement.node, self.code)
            own.update(set_names(statement.node, self.code))
        return exported, own

    def refuse_what_a_task_would_miss(self, program: Started) -> None:
        """Functions, arrays, and variables of the launch block that have another meaning."""
        exported, own = self.own_names()
        shells = {n for s in self.kept for n in self.own_to_shell(s.node)}
        used = {*program.variables, *self.setup.rank_names}
        given = {name for name in RANKS for text in self.setup.ranks if f"{name}=" in text}
        given |= set(self.setup.found) & RANKS
        is_alone = program.launcher.is_one_process
        if not is_alone and used & RANKS - (given if program.launcher.ranks != AGENT else set()):
            raise NotIdiomaticError("the command uses a variable of a rank")
        if used & shells or program.name in own | shells:
            raise NotIdiomaticError("the command uses a function or an array of the script")
        if used & {"?", "!", "$", "PIPESTATUS"} and not is_alone:
            raise NotIdiomaticError("the command uses a state of the script's shell")
        if not is_alone and set(self.setup.rank_names) & (own - exported):
            raise NotIdiomaticError("a variable of a rank is made of the script's own")
        is_sourced = any(self.is_sourced(kept.node) for kept in self.kept)
        if is_sourced and self.unknown(set(program.variables)):
            raise NotIdiomaticError("the command may use a variable of a file that is sourced")
        sets_threads = "OMP_NUM_THREADS" in exported or self.shape.cpus is None
        if "OMP_NUM_THREADS" in used and not sets_threads:
            raise NotIdiomaticError("the command uses OMP_NUM_THREADS, which the job sets")
        if used & own & set(_SHELL_OWN):
            raise NotIdiomaticError("the command uses a state of the script's shell")

    def parts(self, program: Started, commands: str) -> Parts:
        setup = self.setup
        found, command, dropped = setup.found, program.text, list(setup.dropped)
        line = self.script.position(self.offset)[0]
        dropped += [(line, text) for text in program.dropped]
        if setup.ranks and program.launcher.ranks == AGENT:
            name = program.launcher.name
            dropped.append((line, f"{name} sets MASTER_ADDR and MASTER_PORT by itself"))
        elif setup.ranks:
            if program.words:
                raise NotIdiomaticError("a container's command can't set MASTER_PORT")
            command = "\n".join([*setup.ranks, command])
        if "MASTER_PORT" in found and re.search(r"\bMASTER_PORT\b", command):
            raise NotIdiomaticError("the command uses the MASTER_PORT of the script")
        first = []
        own = self.handed_on(program)
        if own:
            first.append(f"export -n {' '.join(own)}")
        if self.has_arguments(program):
            first.append('eval "set -- $ARGUMENTS"; export -n ARGUMENTS')
        if first and program.words:
            raise NotIdiomaticError("the command in the container expands variables")
        command = "\n".join([*first, command])
        if "hook" in found and "conda" not in found:
            raise NotIdiomaticError("conda's hook stands by itself")
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
