"""Set-up statements of a script -> `setup` and `env` of a job file.

A job file's own order is modules, an environment, variables, commands; a statement goes
into a key only where it comes to the same in that order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.importer.code_as_keys import Variable
from slurmgen.importer.nodes import expandable, path, set_names, source, variables, walk
from slurmgen.importer.started_program import TASK_VARIABLES
from slurmgen.jobfile.reserved import refused_variable
from slurmgen.slurm.quoting import split_expansions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

    from slurmgen.slurm.request import Request

RANKS = frozenset(
    "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK MASTER_ADDR "
    "MASTER_PORT".split()
)
_OPTIONS = {"e": "errexit", "u": "nounset", "x": "xtrace", "E": "errtrace"}
_FIRST_NODE = re.compile(
    r"""["']?\$\(\s*scontrol\s+show\s+host(?:name|names)"""
    r"""(?:\s+"?\$\{?SLURM_(?:JOB_)?NODELIST\}?"?)?"""
    r"""\s*\|\s*(?:head\s+(?:-n\s*1|-1|--lines=1)|sed\s+-n\s+'?1p'?)\s*\)["']?"""
    # The batch shell runs on the first node.
    r"""|["']?\$\(\s*hostname(?:\s+-[sf])?\s*\)["']?"""
)
_VARIABLE = re.compile(r"""["']?\$\{?(\w+)\}?["']?""")
# Below the ports that outgoing connections take.
_MOST_PORT = 32_767
_TOOLS_OF_SETUP = frozenset("module ml source . eval conda".split())
# What loading a module or an environment may change, or be changed by.
_OUTSIDE = ("HOME", "USER", "LOGNAME", "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_SUBMIT_DIR")
_TOOLS = re.compile(
    r"MODULE|LMOD|CONDA|MAMBA|PYTHON(PATH|HOME|NOUSERSITE|USERBASE)\b|VIRTUAL_ENV|UV_|\w*PATH\b|LD_|EB|_"
)


class Statement(NamedTuple):
    """A statement of the script's top level; offsets in the code, the line in the script.

    number: among the statements. above, behind: comments over it and on its line.
    background: behind it stands `&`.
    """

    node: Node
    start: int
    end: int
    line: int
    number: int = 0
    above: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    background: bool = False


class SetUp:
    """What has been taken into keys so far.

    options: of `set`. found: purge, hook, venv, conda and MASTER_ADDR, where they are
    there. ranks: exports that each task has to make, and rank_names the variables in them.
    above: comments by the key they stand over; first: those that belong to whatever comes
    first. dropped: line and text of what the launch block does by itself. shown: variables of
    a rank that stay commands, which the launch block sets again. dropped_names: what those that are
    dropped were made of.
    """

    def __init__(
        self, code: str, request: Request, options: Sequence[str], *, has_ranks: bool
    ) -> None:
        """has_ranks: whether the launch block sets the variables of a rank."""
        self.code = code
        self.request = request
        self.has_ranks = has_ranks
        self.options = {
            _OPTIONS[letter] for word in options for letter in word[1:] if letter in _OPTIONS
        }
        self.shown: set[str] = set()
        self.dropped_names: set[str] = set()
        self.found: dict[str, str] = {}
        self.use: list[str] = []
        self.load: list[str] = []
        self.env: list[Variable] = []
        self.ranks: list[str] = []
        self.rank_names: set[str] = set()
        self.above: dict[str, tuple[str, ...]] = {}
        self.first: list[str] = []
        self.dropped: list[tuple[int, str]] = []

    def lift(self, statement: Statement, above: tuple[str, ...]) -> bool:
        """Take a statement into a key; whether that could be done."""
        node = statement.node
        if any(not name.isidentifier() for name in variables(node, self.code)):
            return False
        if node.type in ("declaration_command", "variable_assignment"):
            exports = node.type == "declaration_command"
            count = len(self.env)
            found = self.export(statement, above) if exports else self.of_rendezvous(statement)
            if found and len(self.env) == count:
                # What it was about is done by the launch block.
                self.note("command", above)
            return found
        if node.type != "command":
            return False
        words = [child for child in node.children if child.is_named]
        name = source(words[0], self.code)
        if name == "set":
            return not self.found and not self.env and self.set_options(words[1:], above)
        if name in _TOOLS_OF_SETUP and not self.may_come_first():
            return False
        if name in ("module", "ml"):
            return not self.found.keys() & {"venv", "conda"} and self.module(name, words[1:], above)
        if name in ("source", ".") and len(words) == 2:
            return self.activate(words[1], above)
        if source(node, self.code).split() == 'eval "$(conda shell.bash hook)"'.split():
            self.found["hook"] = "yes"
            self.note("conda", above)
            return "venv" not in self.found
        if name == "conda" and "hook" in self.found and "conda" not in self.found:
            return self.conda(words[1:], above)
        return False

    def may_come_first(self) -> bool:
        """Whether the variables so far may as well be set behind a module or an environment."""
        known = set(_OUTSIDE)
        for variable in self.env:
            names = {name for _, name in split_expansions(variable.value) if name}
            if _TOOLS.match(variable.name) or not names <= known:
                return False
            known.add(variable.name)
        return True

    def note(self, key: str, above: tuple[str, ...]) -> None:
        self.above[key] = (*self.above.get(key, ()), *above)

    def set_options(self, words: list[Node], above: tuple[str, ...]) -> bool:
        texts = [source(word, self.code) for word in words]
        while texts:
            letters = texts.pop(0)
            if not letters.startswith("-") or not set(letters[1:]) <= set("euxEo"):
                return False
            self.options |= {_OPTIONS[letter] for letter in letters[1:] if letter != "o"}
            if "o" in letters:
                if not texts or texts[0] not in ("errexit", "nounset", "pipefail"):
                    return False
                self.options.add(texts.pop(0))
        self.first += above
        return True

    def module(self, name: str, words: list[Node], above: tuple[str, ...]) -> bool:
        texts = [path(word, self.code) for word in words]
        if not texts or any(text is None or text.startswith("-") for text in texts):
            return False
        given = [text for text in texts if text is not None]
        verb = given[0]
        if name == "ml" and verb not in ("purge", "use", "load", "add"):
            if any(character in "".join(given) for character in "$-+"):
                return False
            verb, given = "load", ["load", *given]
        rest = given[1:]
        if verb == "purge" and not rest and not (self.use or self.load or self.found):
            self.found["purge"] = "yes"
        elif verb == "use" and rest and not self.load:
            self.use += rest
        elif verb in ("load", "add") and rest and not any("$" in text for text in rest):
            self.load += rest
        else:
            return False
        self.note("modules", above)
        return True

    def activate(self, word: Node, above: tuple[str, ...]) -> bool:
        file = path(word, self.code)
        if file is None or not file.endswith("/bin/activate"):
            return False
        if self.found.keys() & {"venv", "hook"}:
            return False
        self.found["venv"] = file.removesuffix("/bin/activate")
        self.note("venv", above)
        return True

    def conda(self, words: list[Node], above: tuple[str, ...]) -> bool:
        texts = [path(word, self.code) for word in words]
        if len(texts) != 2 or texts[0] != "activate" or texts[1] is None:
            return False
        self.found["conda"] = texts[1]
        self.note("conda", above)
        return True

    def export(self, statement: Statement, above: tuple[str, ...]) -> bool:
        """`export NAME=value …`, all of it or nothing."""
        words = statement.node.named_children
        if source(statement.node.children[0], self.code) != "export" or not words:
            return False
        names = [source(w.named_children[0] if w.named_children else w, self.code) for w in words]
        if self.has_ranks and set(names) <= RANKS:
            return self.rank_variables(statement, words)
        found: list[Variable] = []
        for word, name in zip(words, names, strict=True):
            if word.type != "variable_assignment" or "=" not in [
                child.type for child in word.children
            ]:
                return False
            value = word.child_by_field_name("value")
            text = "" if value is None else expandable(value, self.code)
            if name == "SRUN_CPUS_PER_TASK" and len(words) == 1:
                return self.cpus(statement, text)
            if text is None or refused_variable(name) is not None:
                return False
            # The launch block sets them later.
            if RANKS & {used for _, used in split_expansions(text)}:
                return False
            found.append(Variable(name, text, above if not found else ()))
        if any(v.name == known.name for v in found for known in self.env):
            return False
        self.env += found
        return True

    def cpus(self, statement: Statement, text: str | None) -> bool:
        """What our srun is told by an option."""
        given = self.request.value("cpus-per-task")
        if given is None or text not in ("${SLURM_CPUS_PER_TASK}", given):
            return False
        self.dropped.append((statement.line, "srun is given --cpus-per-task by itself"))
        return True

    def rank_variables(self, statement: Statement, words: list[Node]) -> bool:
        """`export MASTER_ADDR=… MASTER_PORT`: each set by the launch block, or kept for it."""
        kept: list[Node] = []
        dropped: list[str] = []
        for word in words:
            name = source(word.named_children[0] if word.named_children else word, self.code)
            if word.type == "variable_name":
                if name not in self.found and name not in self.shown:
                    return False
            elif self.is_replaced(name, word.child_by_field_name("value")):
                dropped.append(name)
            elif self.is_for_tasks(word):
                kept.append(word)
            else:
                return False
        if dropped and any(self.is_shown(name, statement) for name in dropped):
            self.shown |= set(dropped)
            return False
        self.dropped_names |= set(variables(statement.node, self.code)) if dropped else set()
        for name in dropped:
            self.found[name] = "yes"
            self.dropped.append((statement.line, f"{name} is set by the job's launch block"))
        for word in kept:
            value = word.child_by_field_name("value")
            self.rank_names |= set(variables(value, self.code)) if value is not None else set()
            self.ranks.append(f"export {source(word, self.code)}")
        return True

    def is_of_ranks(self, statement: Statement) -> bool:
        """Whether the statement sets variables of a rank alone, which the launch block orders."""
        names = set(set_names(statement.node, self.code))
        return self.has_ranks and bool(names) and names <= RANKS

    def of_rendezvous(self, statement: Statement) -> bool:
        """`MASTER_ADDR=…` by itself, which a later `export MASTER_ADDR` is about."""
        name = source(statement.node.named_children[0], self.code)
        value = statement.node.child_by_field_name("value")
        if not (self.has_ranks and name in RANKS and self.is_replaced(name, value)):
            return False
        if self.is_shown(name, statement):
            self.shown.add(name)
            return False
        self.dropped_names |= set(variables(statement.node, self.code))
        self.found[name] = "yes"
        self.dropped.append((statement.line, f"{name} is set by the job's launch block"))
        return True

    def is_shown(self, name: str, statement: Statement) -> bool:
        """Whether a later line of the set-up says what the variable is."""
        rest = self.code[statement.end :]
        return re.search(rf"^\s*(?:echo|printf)\b.*\b{name}\b", rest, re.MULTILINE) is not None

    def is_replaced(self, name: str, value: Node | None) -> bool:
        """Whether the launch block sets the variable to the same, or to as good a port."""
        text = "" if value is None else source(value, self.code)
        if name == "MASTER_ADDR":
            found = _VARIABLE.fullmatch(text)
            if found is not None:
                text = self.only_value(found[1]) or ""
            return _FIRST_NODE.fullmatch(text) is not None
        if name == "WORLD_SIZE":
            return text.strip('"') in ("$SLURM_NTASKS", "${SLURM_NTASKS}", "$SLURM_NPROCS")
        if name != "MASTER_PORT" or value is None:
            return False
        # Then it has to be this one.
        if re.search(r"\$\{?MASTER_PORT", self.code):
            return False
        # Digits that Bash would read as octal, or one port for whatever runs at the same time,
        # are faults that stay.
        if "$((" in text and "10#" not in text and re.search(r"SLURM_JOB_?ID:|tail|cut", text):
            return False
        if not re.search(r"SLURM_JOB_?ID|RANDOM|shuf", text):
            return False
        return sum(map(int, re.findall(r"(?<![\w$#])\d{1,9}\b", text))) <= _MOST_PORT

    def is_still(self, assignment: Node) -> bool:
        """Whether all that an assignment does is to set its variable."""
        value = assignment.child_by_field_name("value")
        text = "" if value is None else source(value, self.code)
        inner = {node.type for node in walk(assignment)}
        if inner & {"command_substitution", "process_substitution"}:
            return _FIRST_NODE.fullmatch(text) is not None
        return "array" not in inner

    def only_value(self, name: str) -> str | None:
        """The source of what a variable is set to, where that is done once."""
        found = re.findall(rf"(?:^|[\s;]){name}=(.*)", self.code)
        return re.sub(r"\s+#.*", "", found[0]).strip() if len(found) == 1 else None

    def is_for_tasks(self, word: Node) -> bool:
        """Whether each task would set the variable to the same."""
        value = word.child_by_field_name("value")
        if value is None or any(n.type == "command_substitution" for n in walk(value)):
            return False
        return not set(variables(value, self.code)) & TASK_VARIABLES
