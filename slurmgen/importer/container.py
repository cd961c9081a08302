"""The container around a program: `apptainer exec --nv x.sif …`, or pyxis' options of srun."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slurmgen.reading.shell.words import TEXT, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slurmgen.reading.shell.words import Word

RUNTIMES = ("apptainer", "singularity")
_GPU = {"--nv": "nvidia", "--rocm": "rocm"}
_BIND = ("--bind", "-B")
_PYXIS = {"container-image": "image", "container-mounts": "mounts", "container-workdir": "workdir"}
# In a word without quotes the shell would do something with them.
_LIVE = frozenset("*?[]{}~!")


class Container(NamedTuple):
    """`setup.container` of a job file; names are the variables in its paths."""

    image: str
    runtime: str = ""
    mounts: tuple[str, ...] = ()
    gpu: str = ""
    workdir: str = ""
    names: tuple[str, ...] = ()


class Inside(NamedTuple):
    """A container and the words of the program in it."""

    container: Container
    rest: tuple[Word, ...]


def peel(words: Sequence[Word], gpus: int) -> Inside | None:
    """The container that the words start; None where they start none, or one with more to it.

    gpus: of the node, from which a job file takes `--nv` for granted.
    """
    runtime = words[0].text
    if runtime not in RUNTIMES or len(words) < 4 or words[1].text != "exec":
        return None
    mounts: list[str] = []
    gpu, workdir = "none", ""
    names: list[str] = []
    at = 2
    while at < len(words):
        name, equals, _ = words[at].text.partition("=")
        if name in _GPU and not equals and gpu == "none":
            gpu = _GPU[name]
        elif name in (*_BIND, "--pwd"):
            value = words[at].after(f"{name}=") if equals else words[min(at + 1, len(words) - 1)]
            text = _path(value, names)
            if text is None or (name == "--pwd" and workdir):
                return None
            at += not equals
            if name == "--pwd":
                workdir = text
            else:
                mounts.append(text)
        elif name.startswith("-"):
            return None
        else:
            break
        at += 1
    if at + 1 >= len(words):
        return None
    image = _path(words[at], names)
    if image is None or image.endswith(".sqsh"):
        return None
    gpu = "" if gpu == ("nvidia" if gpus else "none") else gpu
    given = "" if runtime == "apptainer" else runtime
    found = Container(image, given, tuple(mounts), gpu, workdir, tuple(names))
    return Inside(found, tuple(words[at + 1 :]))


def of_step(options: Mapping[str, Word]) -> Container | None:
    """The container of pyxis' options; None where there is more to it than a job file says."""
    names: list[str] = []
    found: dict[str, str] = {}
    for option, word in options.items():
        if not option.startswith("container-"):
            continue
        text = _path(word, names)
        if option not in _PYXIS or text is None:
            return None
        found[_PYXIS[option]] = text
    if "image" not in found:
        return None
    mounts = tuple(found["mounts"].split(",")) if "mounts" in found else ()
    if any(":" not in mount for mount in mounts):
        return None
    runtime = "" if found["image"].endswith(".sqsh") else "pyxis"
    workdir = found.get("workdir", "")
    return Container(found["image"], runtime, mounts, "", workdir, tuple(names))


def _path(word: Word, names: list[str]) -> str | None:
    """The word as a path of a job file, in which only `${NAME}` expands."""
    found = ""
    for piece in word.pieces:
        if piece.kind == TEXT:
            if "$" in piece.text or (not piece.quoted and _LIVE & set(piece.text)):
                return None
            found += piece.text
        elif piece.kind == VARIABLE and not piece.operator and piece.name.isidentifier():
            names.append(piece.name)
            found += f"${{{piece.name}}}"
        else:
            return None
    return found or None


def literal_words(words: Sequence[Word]) -> tuple[str, ...] | None:
    """The words, where a shell would leave them as they are."""
    found = []
    for word in words:
        if word.literal is None or any(
            _LIVE & set(piece.text) and not piece.quoted for piece in word.pieces
        ):
            return None
        found.append(word.literal)
    return tuple(found)
