"""`srun bash -c '…'`, and a here-document for bash: code that each task runs already."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import TYPE_CHECKING

from slurmgen.importer.nodes import source, walk
from slurmgen.importer.started_program import NotIdiomaticError, Shape, Started
from slurmgen.importer.torchrun import torchrun
from slurmgen.launchers import ONE, PROGRAM, TASKS, with_ranks
from slurmgen.reading.script import BatchScript
from slurmgen.reading.shell.starters import ACCELERATE, TORCHRUN, read_launcher
from slurmgen.reading.shell.syntax import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

    from slurmgen.reading.shell.words import Word

# What a task that is a rank has by itself.
_SET = {
    "RANK": {"SLURM_PROCID"},
    "LOCAL_RANK": {"SLURM_LOCALID"},
    "WORLD_SIZE": {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"},
    "NODE_RANK": {"SLURM_NODEID"},
}
_SHEBANG = "#!/bin/bash\n"


def bash_code(words: Sequence[Word], text: str) -> str | None:
    """The code of `bash -c '…'`, where the batch shell leaves it as it stands; else None."""
    if len(words) != 3 or words[0].text not in ("bash", "/bin/bash") or words[1].text != "-c":
        return None
    given = text[words[2].start : words[2].end]
    literal = given.startswith("'") and given.endswith("'") and "'" not in given[1:-1]
    if not literal:
        raise NotIdiomaticError("the batch shell expands what bash -c is given")
    return given[1:-1]


def heredoc(text: str) -> str | None:
    """The code of `srun … bash <<'EOF'`, and nothing else in the statement; else None."""
    root = parse(text)
    redirected = root.named_children[0] if root is not None and root.named_children else None
    if redirected is None or len(redirected.named_children) != 2:
        return None
    command, given = redirected.named_children
    parts = {child.type: child for child in given.children}
    if (
        given.type != "heredoc_redirect"
        or set(parts) - {"<<", "heredoc_start", "heredoc_body", "heredoc_end"}
        or "heredoc_body" not in parts
        or source(parts["heredoc_start"], text)[0] not in "'\"\\"
        or not re.search(r"\sbash$", source(command, text))
    ):
        return None
    return source(parts["heredoc_body"], text)


def started(code: str, shape: Shape) -> Started:
    """What starts the code in each task; raises NotIdiomaticError where nothing does."""
    code = _dedented(code.strip("\n").rstrip())
    script = BatchScript(f"{_SHEBANG}{code}\n")
    root = parse(code)
    if root is None or root.has_error or not code or "$0" in code:
        raise NotIdiomaticError("what bash -c is given can't be read")
    statements = [node for node in root.named_children if node.type != "comment"]
    found = _of_ranks(code, script, statements, shape)
    if found is not None:
        return found
    if shape.gpus and shape.per_node != shape.gpus and not shape.is_single:
        raise NotIdiomaticError("there are more or fewer tasks than GPUs on a node")
    dropped: list[str] = []
    if not shape.is_single:
        code = _without_ranks(code, root, dropped)
        statements = [node for node in _statements(code) if node.type != "comment"]
    text = _with_options(code, statements)
    launcher = with_ranks(ONE if shape.is_single else TASKS)
    return Started(launcher, text, name="bash", dropped=tuple(dropped))


def _dedented(code: str) -> str:
    """The code without the margin that it has in the script, where no text has the same."""
    root = parse(code)
    texts = ("string", "raw_string", "ansi_c_string", "heredoc_body")
    inner = [] if root is None else [node for node in walk(root) if node.type in texts]
    if any("\n" in source(node, code) for node in inner):
        return code.lstrip()
    return dedent(code).lstrip()


def _of_ranks(
    code: str, script: BatchScript, statements: list[Node], shape: Shape
) -> Started | None:
    """A launcher in the code that starts the node's ranks."""
    if shape.per_node != 1 or len(statements) != 1:
        return None
    offset = len(_SHEBANG)
    start, end = (offset + at for at in (statements[0].start_byte, statements[0].end_byte))
    command = next((c for c in script.shell.commands if c.start == start), None)
    if command is None or not command.words or command.assignments:
        return None
    torch = read_launcher(command.words)
    if torch is None or statements[0].type != "command":
        return None
    if torch.launcher.kind == TORCHRUN:
        found = torchrun(script.text, torch, shape, end, in_task=True)
        if found is not None:
            return found._replace(variables=())
    if torch.launcher.kind in (TORCHRUN, ACCELERATE) and shape.gpus > 1 and not shape.is_single:
        return Started(with_ranks(PROGRAM), code, name=command.name)
    return None


def _statements(code: str) -> list[Node]:
    root = parse(code)
    return [] if root is None else list(root.named_children)


def _with_options(code: str, statements: list[Node]) -> str:
    """The code with the shell options that bash -c has."""
    if len(statements) == 1 and statements[0].type == "command":
        return code
    piped = "set +eo pipefail\n" if "|" in code else "set +e\n"
    return piped + code


def _without_ranks(code: str, root: Node, dropped: list[str]) -> str:
    """The code without what the launch block sets in the same way."""
    cuts: list[tuple[int, int]] = []
    for node in root.named_children:
        if node.type in ("declaration_command", "variable_assignments", "command"):
            whole = [n for n in node.named_children if n.type == "variable_assignment"]
            mine = [n for n in whole if _is_of_ours(n, code)]
            if not mine:
                continue
            dropped += [f"{_name(n, code)} is set by the job's launch block" for n in mine]
            if len(mine) == len(node.named_children):
                behind = re.compile(r"[ \t]*[;\n]?[ \t]*").match(code, node.end_byte)
                cuts.append((node.start_byte, behind.end() if behind else node.end_byte))
            else:
                cuts += [(n.start_byte, _behind(n, code)) for n in mine]
        elif node.type == "variable_assignment" and _is_of_ours(node, code):
            continue
    for start, end in reversed(cuts):
        code = code[:start] + code[end:]
    return code.strip("\n")


def _behind(node: Node, code: str) -> int:
    blanks = re.compile(r"[ \t]*").match(code, node.end_byte)
    return blanks.end() if blanks is not None else node.end_byte


def _name(assignment: Node, code: str) -> str:
    return source(assignment.named_children[0], code)


def _is_of_ours(assignment: Node, code: str) -> bool:
    value = assignment.child_by_field_name("value")
    text = "" if value is None else source(value, code).strip('"')
    return text.strip("${}") in _SET.get(_name(assignment, code), ()) and text.startswith("$")
