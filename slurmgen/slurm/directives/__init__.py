"""sbatch text -> its directives, exactly as sbatch reads them, and what it would not read.

The grammar is that of `_get_options` in src/sbatch/opt.c and of getopt_long, and was
compared with `sbatch -vv --test-only` on 22.05. Directives start in column 1 with
`#SBATCH` and stand before the first line that is neither blank nor a comment. Words are
split at white space outside quotes, `#` starts a comment there, inside a word too (`a#b`
is `a`), and a line that starts with the word `hetjob` opens the next component of the job.

An option whose value cannot be what was meant (`-N=2`, `-nodes=2`, `--mem 64 GB`) is
listed as it was meant, together with the problem, so that what follows from it can be
judged all the same.
"""

from slurmgen.slurm.directives.block import read
from slurmgen.slurm.directives.model import Directive, DirectiveBlock, DirectiveProblem
from slurmgen.slurm.directives.words import split_words

__all__ = ["Directive", "DirectiveBlock", "DirectiveProblem", "read", "split_words"]
