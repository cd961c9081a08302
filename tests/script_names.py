"""The names that rendered scripts use, read from the templates.

`slurmgen/jobfile/script_names.py` is written from here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from slurmgen.cluster import generic
from slurmgen.jobfile.job import JobSpec
from slurmgen.reading.shell.syntax import parse
from slurmgen.resources import templates_dir
from slurmgen.script.plan import resolve
from slurmgen.script.render import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

# Where a value is put in. A text of the template itself, as in {{ '${#commas}' }}, is code.
_STATEMENT = re.compile(r"\{%.*?%\}\n?|\{#.*?#\}", re.DOTALL)
_OWN_TEXT = re.compile(r"\{\{\s*'([^']*)'\s*\}\}")
_VALUE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_PUT_IN = "A_VALUE_IS_PUT_IN_HERE"
# One job of each launcher, with what Python itself writes into a script.
JOBS: tuple[dict[str, Any], ...] = (
    {"nodes": 2, "ntasks_per_node": 2, "command": "true", "requeue": {"on_node_fail": True}},
    {"nodes": 2, "ntasks": 3, "ddp": "train.py", "array": "0-1"},
    {"launcher": "plain", "command": ["true"], "export": "NIL"},
    {"nodes": 2, "launcher": "spawn", "command": ["true"]},
    {"nproc_per_node": 2, "launcher": "torchrun", "command": ["true"]},
    {"nproc_per_node": 2, "launcher": "torchrun", "rdzv": "c10d", "command": ["true"]},
)


def of_templates() -> set[str]:
    """Every name that a built-in template sets, reads, or gives a function."""
    found = set()
    for path in sorted(templates_dir().rglob("*.j2")):
        text = _OWN_TEXT.sub(r"\1", _STATEMENT.sub("", path.read_text()))
        found |= of_code(_VALUE.sub(_PUT_IN, text))
    return found - {_PUT_IN}


def of_rendered() -> set[str]:
    """The same of whole scripts in which nothing is the job's own."""
    return set().union(*(of_code(render(resolve(JobSpec(**job), generic.PROFILE))) for job in JOBS))


def of_code(text: str) -> set[str]:
    """The variables and functions of Bash code."""
    root = parse(text)
    assert root is not None
    return {name for node in _nodes(root) for name in _of_node(node, text)}


def _of_node(node: Node, text: str) -> Iterator[str]:
    if node.type == "variable_name":
        yield text[node.start_byte : node.end_byte]
    named = node.child_by_field_name("name")
    if named is None:
        return
    name = text[named.start_byte : named.end_byte]
    if node.type == "function_definition":
        yield name
    elif node.type == "command" and name == "read":
        for word in node.children_by_field_name("argument"):
            argument = text[word.start_byte : word.end_byte]
            if re.fullmatch(r"[A-Za-z_]\w*", argument):
                yield argument


def _nodes(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        yield node


def commands(text: str) -> set[str]:
    """The programs, functions and builtins that Bash code calls."""
    root = parse(text)
    assert root is not None
    called = (n.child_by_field_name("name") for n in _nodes(root) if n.type == "command")
    return {text[name.start_byte : name.end_byte] for name in called if name is not None}
