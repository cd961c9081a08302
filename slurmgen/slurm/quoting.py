"""How values are quoted: as Bash words, plain or with `${NAME}`, and on `#SBATCH` lines.

sbatch splits its directive lines with a parser of its own (`_get_next_opt_arg` and
`_add_arg` in src/sbatch/opt.c): `#` starts a comment outside quotes, a backslash
inside single quotes is dropped, and nothing is expanded. So `shlex.quote` is wrong
there: `'a\\b'` arrives as `ab` (seen on 22.05.8). Double quotes with `\\` and `"`
escaped arrive unchanged on 20.11, 22.05, 24.11 and 26.05.
"""

from __future__ import annotations

from slurmgen.errors import Refusal

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_PLAIN_IN_BASH = _LETTERS | frozenset("@%+=:,./_-")
# Shellcheck (SC2016) takes $ and ` in single quotes for an expansion that was forgotten,
# and a backslash before the closing quote (SC1003) for one that was meant to escape it.
_LIVE_IN_SINGLE_QUOTES = frozenset("'$`")
_PLAIN_IN_DIRECTIVE = _LETTERS | frozenset("@%+=:,./_-*&|()[]<>?!{}~^$")

# The kernel's limit for one argument or one NAME=value, its NUL included
# (MAX_ARG_STRLEN in linux/binfmts.h: 32 pages).
MAX_ARGUMENT_BYTES = 131_072


def bash_word(text: str) -> str:
    """`text` as one Bash word that evaluates to exactly `text`, on one line.

    Raises Refusal for what no argument can hold: NUL and lone surrogates.
    """
    # Shellcheck (SC1097) takes a value that begins with = for a comparison.
    if text and _PLAIN_IN_BASH.issuperset(text) and text[0] != "=":
        return text
    if not text.isprintable():
        return "$'" + "".join(_ansi_c(character) for character in text) + "'"
    if _LIVE_IN_SINGLE_QUOTES.isdisjoint(text) and not text.endswith("\\"):
        return f"'{text}'"
    return '"' + "".join("\\" + c if c in '\\"$`' else c for c in text) + '"'


def _ansi_c(character: str) -> str:
    """One character as it stands inside `$'…'` (bash(1), QUOTING)."""
    if character in "\\'":
        return "\\" + character
    if character.isprintable():
        return character
    check_encodable(character)
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    # Octal escapes end after three digits, so what follows can't be taken into them.
    return named or "".join(f"\\{byte:03o}" for byte in character.encode())


def bash_expandable(text: str, *, required: bool) -> str:
    """`text` as one Bash word in which `${NAME}` expands and nothing else does.

    `$${` stands for a literal `${`. With `required`, an unset or empty NAME ends the
    script with a message (for paths: `/data` is never what an unset `${SCRATCH}/data`
    meant); without it, it expands to nothing.
    """
    word = ""
    for literal, name in split_expansions(text):
        if literal:
            word += bash_word(literal)
        if name:
            word += f'"${{{name}:?is not set}}"' if required else f'"${{{name}}}"'
    return word or "''"


def split_expansions(text: str) -> list[tuple[str, str]]:
    """`text` as pairs of a literal and the name expanded after it (`""`: none).

    Raises Refusal for `${` that is not followed by a plain name and `}`.
    """
    pairs: list[tuple[str, str]] = []
    literal = ""
    rest = text
    while True:
        start = rest.find("${")
        if start < 0:
            break
        if start and rest[start - 1] == "$":
            literal += rest[: start - 1] + "${"
            rest = rest[start + 2 :]
            continue
        name, brace, after = rest[start + 2 :].partition("}")
        if not brace or not is_variable_name(name):
            raise Refusal(
                f'"${{{name[:40]}" is not a variable in braces',
                why="here only ${NAME} is expanded; nothing else is shell code",
                fix="write ${NAME}, or $${ for a literal ${",
            )
        pairs.append((literal + rest[:start], name))
        literal, rest = "", after
    if literal or rest:
        pairs.append((literal + rest, ""))
    return pairs


def is_variable_name(name: str) -> bool:
    """Whether `name` can be a shell variable: ASCII letters, digits and `_`, no digit first."""
    return name.isascii() and name.isidentifier()


def directive_value(text: str) -> str:
    """`text` as the value of an option on an `#SBATCH` line, as sbatch itself reads it.

    Raises Refusal where it holds a character that would end the line or vanish.
    """
    check_separator(text)
    if text and _PLAIN_IN_DIRECTIVE.issuperset(text):
        return text
    check_one_line(text)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def check_directive(text: str) -> None:
    """Refuse what can't be the value of a directive, whatever quotes are around it."""
    check_one_line(text)
    check_separator(text)


def check_separator(text: str) -> None:
    """Refuse the words that part the components of a heterogeneous job.

    Slurm 20.11 finds them anywhere in a directive, inside a quoted word too, and takes what
    stands behind them for options of another component; 22.05 and later only as the first word.
    """
    lowered = text.lower()
    for word in ("hetjob", "packjob"):
        if word in lowered:
            raise Refusal(
                f'the value holds the letters "{word}"',
                why="Slurm 20.11 parts a heterogeneous job there, inside a value too",
                fix=f"write it otherwise, say {word[:-3]}-job",
            )


def check_one_line(text: str) -> None:
    """Refuse line breaks and other control characters."""
    check_encodable(text)
    for character in text:
        if ord(character) < 32 or ord(character) == 127:
            name = {"\n": "a line break", "\r": "a carriage return", "\t": "a tab"}.get(
                character, f"the control character U+{ord(character):04X}"
            )
            raise Refusal(
                f"the value holds {name}",
                why="an #SBATCH directive is one line; what follows would become another line",
                fix="write it in one line, without control characters",
            )


def check_encodable(text: str) -> None:
    """Refuse what neither a file nor an argument can hold: NUL and lone surrogates."""
    if "\0" in text:
        raise Refusal(
            "the value holds a NUL character",
            why="arguments, environment and scripts end at a NUL",
            fix="remove it",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal(
            "the value holds half a surrogate pair",
            why="it has no form in UTF-8",
            fix='write the character itself or its full "\\U" escape',
        ) from None


def check_argument_length(text: str, what: str) -> None:
    """Refuse an argument that the kernel will not pass to a program."""
    size = len(text.encode()) + 1
    if size > MAX_ARGUMENT_BYTES:
        raise Refusal(
            f"{what} is {size - 1:,} bytes long",
            why=f"Linux passes at most {MAX_ARGUMENT_BYTES - 1:,} bytes in one argument",
            fix="put the text in a file and pass its path",
        )
