"""What Bash makes of variables that a job file might set.

Asked of Bash 4.4, 5.0, 5.1, 5.2 and 5.3 by `tests/asking_bash.py`, which exports every name
that a Bash knows, or has in its program, with values of several kinds: does the value run, does
it reach a program byte for byte, does the script still do the same? A test asks the Bash at hand.
"""

from __future__ import annotations

# Integers to Bash, which evaluates what they are given: the value a[$(id)] runs id.
EVALUATED = frozenset(("HISTCMD", "OPTIND", "RANDOM", "SRANDOM"))
# Code, or a file of code: for the next Bash that starts, for `set -x`, for an interactive one.
READ_AS_CODE = frozenset(("BASH_ENV", "ENV", "MAILPATH", "PROMPT_COMMAND", "PS0", "PS4"))
# Not to be set: the assignment ends the script.
READ_ONLY = frozenset(("BASHOPTS", "BASHPID", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"))
# Bash's own: another value, or none, is what a program finds.
NOT_PASSED_ON = frozenset(
    "BASH BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND "
    "BASH_EXECUTION_STRING BASH_LINENO BASH_MONOSECONDS BASH_SOURCE BASH_SUBSHELL BASH_VERSION "
    "COMP_WORDBREAKS DIRSTACK EPOCHREALTIME EPOCHSECONDS FUNCNAME GROUPS IFS LINENO OPTERR "
    "PIPESTATUS PS1 PS2 PWD SECONDS SHLVL _".split()
)
# The script would go another way: other commands and files are found, functions and `read` end.
CHANGES_BASH = frozenset(
    "BASH_COMPAT BASH_XTRACEFD CDPATH EXECIGNORE FUNCNEST GLOBIGNORE GLOBSORT POSIXLY_CORRECT "
    "POSIX_PEDANTIC TMOUT".split()
)
# A function that Bash takes from its environment.
FUNCTION_PREFIX = "BASH_FUNC_"
