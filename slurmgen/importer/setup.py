"""Set-up statements of a script -> `setup` and `env` of a job file.

A job file's own order is modules, an environment, variables, commands; a statement goes
into a key only where it comes to the same in that order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from slurmgen.importer.nodes import expandable, path, source, variables, walk
from slurmgen.importer.parts import Variable
from slurmgen.importer.started import TASK_VARIABLES
from slurmgen.quoting import split_expansions
from slurmgen.spec.checks import refused_variable

if TYPE_CHECKING:
    from tree_sitter import Node

RANKS = frozenset(
    "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK MASTER_ADDR "
    "MASTER_PORT".split()
)
_OPTIONS = {"e": "errexit", "u": "nounset"}
_FIRST_NODE = re.compile(
    r"""["']?\$\(\s*scontrol\s+show\s+host(?:name|names)\s+"?\$\{?SLURM_(?:JOB_)?NODELIST\}?"?"""
    r"""\s*\|\s*(?:head\s+(?:-n\s*1|-1|--lines=1)|sed\s+-n\s+'?1p'?)\s*\)["']?"""
)
_TOOLS_OF_SETUP = frozenset("module ml source . eval conda".split())
# What loading a module or an environment may change, or be changed by.
_OUTSIDE = ("HOME", "USER", "LOGNAME", "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_SUBMIT_DIR")
_TOOLS = re.compile(
    r"MODULE|LMOD|CONDA|MAMBA|PYTHON(PATH|HOME|NOUSERSITE|USERBASE)\b|VIRTUAL_ENV|UV_|\w*PATH\b|LD_|EB|_"
)


class Statement(NamedTuple):
    """A statement of the script's top level; offsets in the code, the line in the script."""

    node: Node
    start: int
    end: int
    line: int


class SetUp:
    """What has been taken into keys so far.

    options: of `set`. found: purge, hook, venv, conda and MASTER_ADDR, where they are
    there. ranks: exports that each task has to make, and rank_names the variables in them.
    above: comments by the key they stand over; first: those that belong to whatever comes
    first. dropped: line and text of what the launch block does by itself.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        self.options: set[str] = set()
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
        if node.type == "declaration_command":
            return self.export(statement, above)
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
            if not letters.startswith("-") or not set(letters[1:]) <= set("euo"):
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
        found: list[Variable] = []
        for word in words:
            if word.type != "variable_assignment" or "=" not in [
                child.type for child in word.children
            ]:
                return False
            name = source(word.named_children[0], self.code)
            value = word.child_by_field_name("value")
            if name in RANKS:
                return len(words) == 1 and self.rank_variable(statement, name, value)
            text = "" if value is None else expandable(value, self.code)
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

    def rank_variable(self, statement: Statement, name: str, value: Node | None) -> bool:
        """What each task has to see as it was, unless the launch block gives it the same."""
        text = "" if value is None else source(value, self.code)
        if name == "MASTER_ADDR" and _FIRST_NODE.fullmatch(text):
            self.dropped.append((statement.line, "MASTER_ADDR is set by the job's launch block"))
            self.found["MASTER_ADDR"] = "yes"
            return True
        if value is None or any(n.type == "command_substitution" for n in walk(value)):
            return False
        used = set(variables(value, self.code))
        if used & TASK_VARIABLES:
            return False
        self.rank_names |= used
        self.ranks.append(source(statement.node, self.code))
        return True
