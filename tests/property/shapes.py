"""Texts of any size in the shapes that make readers slow: repeats, nests, chains, mutual calls.

A shape is what grows: units that are repeated, each with its number, and pairs that are nested.
`{i}` is the number, `{p}` the one before, `{n}` the one behind, `{z}` always 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from random import Random

BASH_HEAD = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=1:00:00
V0=start
"""
BASH_TAIL = 'srun python train.py "$A" "$V0"\n'

BASH_UNITS = {
    # values
    "doubling": "A=$A$A\n",
    "chain": "V{n}=$V{i}\n",
    "growing-chain": "V{n}=$V{i}/x\n",
    "exported-chain": 'export V{n}="$V{i}/x"\n',
    "two-names": "V{n}=$V{i}$V{i}\n",
    "kept-chain": "V{n}=${{V{i}%x}}\n",
    "two-kept": "V{n}=${{V{i}%x}}${{V{i}#x}}\n",
    "own-kept": "A=${{A%x}}${{A#y}}\n",
    "one-name": "export A=x{i}\n",
    "names": "export V{i}=x{i}\n",
    "append": "A+=x{i}\n",
    "append-array": "A+=(x{i} y)\n",
    "array": "A=(a b c $V{z} {i})\n",
    "array-use": 'echo "${{A[@]}}" "${{A[{i}]}}"\n',
    "array-grows": 'A=("${{A[@]}}" x)\n',
    "element": "A[{i}]=x\n",
    "arithmetic": "N=$((N + {i}))\n",
    "arithmetic-chain": "N{n}=$((N{i} * 2))\n",
    "two-arithmetic": "N{n}=$((N{i} + N{i}))\n",
    "count-words": "((N{i}++)); let N{i}+=1\n",
    "own-folder": 'D{i}=$(dirname "$0")\n',
    "own-folder-used": 'D{i}=$(dirname "$0"); cat "$D{i}/x"\n',
    "folder-chain": 'D{n}=$(cd "$D{i}" && pwd)\n',
    "default": "V{n}=${{V{i}:-$V{z}}}\n",
    "substitution": "V{i}=$(echo $(echo $V{i}))\n",
    "read": "read -r V{i} <<< $A\n",
    "unset": "unset V{i}\n",
    "local": "local V{i}=$1\n",
    "eval": 'eval "V{i}=\\$A"\n',
    "positional": 'set -- "$@" x{i}\n',
    # functions
    "functions": "f{i}() {{ echo {i}; }}\n",
    "function-calls": "f{i}() {{ echo; }}; f{i} a\n",
    "forward-calls": "f{i}() {{ f{n} a; }}\n",
    "backward-calls": "f{n}() {{ f{i}; f{i}; }}\n",
    "all-calls": "f{i}() {{ f{n}; f{p}; f{z}; V{i}=1; }}\n",
    "one-function": "f() {{ echo {i}; f; }}\nf\n",
    "called": "f0 {i}\n",
    "handed": 'f{i}() {{ python x.py; }}; srun bash -c "$(declare -f f{i}); f{i}"\n',
    "trap": "trap f{i} TERM USR1\n",
    # launches
    "srun": "srun -n1 python train.py --seed {i}\n",
    "srun-background": "srun -n1 python train.py --seed {i} &\n",
    "srun-exclusive": "srun -N1 -n1 --exclusive python train.py {i} &\n",
    "srun-wait": "srun -n1 -c1 prog{i} & wait\n",
    "srun-variable": "srun --export=ALL,V{i}=x python train.py $V{i}\n",
    "srun-shell": "srun bash -c 'export RANK=$SLURM_PROCID V{i}=1; python train.py'\n",
    "srun-options": "srun -N$V{i} -n $A python train.py --lr=$V{i} --world-size $N\n",
    "torchrun": "torchrun --nproc_per_node=$N{i} --master_port=2950{i} train.py\n",
    "ports": "export MASTER_PORT=$((10000 + {i})) MASTER_ADDR=localhost\nsrun python train.py\n",
    "container": "srun apptainer exec --nv --env V{i}=x image.sif python train.py\n",
    "here-shell": "srun bash <<EOF\npython train.py {i}\nEOF\n",
    "containers-env": "export APPTAINERENV_V{i}=x\n",
    "conda": "source activate env{i}\nconda activate env{i}\n",
    "module": "module load cuda/{i}\n",
    "cd": 'cd "/scratch/$USER/{i}" || exit 1\n',
    "sbatch": "sbatch --dependency=afterok:$V{i} next.sbatch\n",
    "ssh": "ssh node{i} python train.py &\n",
    "head-node": "H{i}=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\n",
    "python-c": "python -c 'import torch; print({i})'\n",
    "programs": "python train.py; python other{i}.py\n",
    "gpus": "CUDA_VISIBLE_DEVICES={i} python train.py &\n",
    "variables": 'echo $SLURM_NNODES $SLURM_NTASKS "$SLURM_CPUS_PER_TASK" $SLURM_X{i}\n',
    "exit-status": "python train.py | tee log{i}\nstatus=$?\n",
    # statements
    "comment": "# a remark {i}\n",
    "suppression": "# slurmgen: ignore[srun-missing] because {i}\n",
    "unknown-suppression": "# slurmgen: ignore[nothing-{i}]\n",
    "suppressed": "python train.py  # slurmgen: ignore[SG301, nothing-{i}] why\n",
    "directive": "#SBATCH --comment=x{i}\n",
    "late-directive": "echo\n#SBATCH --mem=4G\n",
    "odd-directive": "#SBATCH --nods={i} -x\n# SBATCH --mem 4\n#SBATCH --gres gpu:{i} \\\n",
    "if": 'if [ -n "$V{i}" ]; then V{i}=1; elif true; then :; fi\n',
    "if-slurm": 'if [ -n "$SLURM_JOB_ID" ]; then D=$(dirname "$0"); fi\n',
    "case": "case $A in x{i}|y) V{i}=1 ;; *) echo ;; esac\n",
    "for": "for i in 1 2 $A; do srun python train.py $i; done\n",
    "while": "while read -r line; do echo $line; done < file{i}\n",
    "pipeline": "cat x | sort | uniq > y{i}\n",
    "test": "[[ $A == x{i} ]] && echo y\n",
    "and-or": "true && false || echo {i}\n",
    "heredoc": "cat <<EOF > f{i}\n$A {i}\nEOF\n",
    "quoted-heredoc": "cat <<'EOF' > f{i}\n$A {i}\nEOF\n",
    "write-program": "cat > x{i}.py <<'EOF'\nimport torch\nEOF\npython x{i}.py\n",
    "redirects": "echo > $A 2>&1 < x{i}\n",
    "long-words": "echo {i}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
    "backslashes": "echo \\\\ \\a \\\n  b{i}\n",
    "non-ascii": "echo é😀{i} 'ö'\n",
    "brace": "echo {{1..{i}}} *.yaml ~/x\n",
    "cr": "echo {i}\r\n",
    "blank": "   \n\t\n",
    "wait": "wait $V{i}\nwait\n",
    "set": "set -euo pipefail\nset +e\n",
    "bad-quote": "echo it's {i}\n",
    "bad-paren": "echo ) {i}\n",
    "bad-open": "if x{i}; then (\n",
    "open-heredoc": "cat <<E{i}\n",
}
# Pieces of one line, which has no end.
BASH_PIECES = {
    "words": " w{i}",
    "quotes": " \"$V{z}\" 'x'",
    "quote-runs": "''\"\"",
    "dollars": "$",
    "backslash": "\\",
    "continued": " w{i} \\\n",
    "semicolons": "; x{i}",
    "semi-only": ";",
    "ampersands": " & x{i}",
    "pipes": " | x{i}",
    "ands": " && x{i}",
    "ors": " || srun x{i}",
    "not": "! ",
    "prefixes": " V{i}=x",
    "options": " --opt{i}=x",
    "expansions": "$V{i}",
    "defaults": "${{V{i}:-x}}",
    "commas": "x{i},",
    "slashes": "/x",
    "equals": "=",
    "colons": ":",
    "blanks": " ",
    "letters": "a",
    "digits": "9",
    "opens": "(",
    "closes": ")",
    "curlies": "{{",
    "closing-curlies": "}}",
    "brackets": "[",
    "less": "<",
    "heredocs": " <<E{i}",
    "redirects": " >x{i}",
    "hash": "#",
    "comment-hash": " # slurmgen: ignore[x]",
    "dashes": "-",
    "nul": "\0",
    "bell": "\a",
    "wide": "😀",
    "returns": "\r",
    "env": "env A{i}=1 ",
    "wrappers": "nohup ",
    "sruns": "srun ",
    "python": "python ",
    "bash-c": "bash -c ",
    "arithmetic": " $((1+{i}))",
    "sub": " $(x{i})",
    "backtick": " `x{i}`",
    "export": " --export=V{i}=1",
    "array": " A+=(x)",
    "node": "n[1-{i}],",
}
BASH_NESTS = {
    "subshell": ("( ", " )"),
    "group": ("{{ ", "; }}"),
    "if": ("if x; then ", "\nfi"),
    "else": ("if x; then y; else ", "\nfi"),
    "elif": ("if x; then y; el", "\nfi"),
    "for": ("for i in a; do ", "\ndone"),
    "while": ("while x; do ", "\ndone"),
    "case": ("case x in x) ", "\n;; esac"),
    "function": ("f{i}() {{ ", "; }}"),
    "substitution": ("$(", ")"),
    "quoted-substitution": ('"$(', ')"'),
    "expansion": ("${{a:-", "}}"),
    "arithmetic": ("$((1+", "))"),
    "parens": ("((", "))"),
    "process": ("<(", ")"),
    "test": ("[[ ( ", " ) ]]"),
    "array": ("a=(", ")"),
    "not": ("! ", ""),
    "srun-shell": ("srun bash -c '", "'"),
    "shell": ('bash -c "', '"'),
    "eval": ("eval '", "'"),
    "heredoc": ("cat <<E{i}\n", "\nE{i}\n"),
    "backtick": ("`", "`"),
}

PYTHON_HEAD = """\
import os
import argparse
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
parser = argparse.ArgumentParser()
v0 = os.environ["RANK"]
a = b = c = 1
"""
PYTHON_TAIL = 'dist.init_process_group("nccl")\ntorch.cuda.set_device(a)\n'
PYTHON_UNITS = {
    "doubling": "a = a + a\n",
    "doubling-call": "a = f(a, a)\n",
    "chain": "v{n} = v{i}\n",
    "chain-up": "v{n} = v{i} + 1\n",
    "two-names": "v{n} = v{i} + v{i}\n",
    "pairs": "v{n} = (v{i}, v{i})\n",
    "formats": 'v{n} = f"{{v{i}}}{{v{i}}}"\n',
    "strings": 's = s + "x"\n',
    "powers": "a = a * 99999999\n",
    "repeats": 'v{n} = "x" * v{i} * 9\n',
    "unpack": "a, b = b, a\n",
    "functions": "def f{i}(x):\n    return x\n",
    "forward-calls": "def f{i}(x):\n    return f{n}(x)\n",
    "backward-calls": "def f{n}(x):\n    return f{i}(x) + f{i}(x)\n",
    "mutual-calls": "def f{i}(x):\n    return f{n}(x) + f{p}(x) + f{z}(x)\n",
    "called": "f0(a)\n",
    "function-calls": "def f{i}(x=v0):\n    g(x)\nf{i}(a)\n",
    "calls": "g{i}(a, b=c)\n",
    "method-chain": "x{i} = a.b().c().d({i})\n",
    "classes": "class C{i}(torch.nn.Module):\n    def f(self):\n        self.x = self.y\n",
    "bases": "class C{n}(C{i}):\n    pass\n",
    "instances": "x{i} = C0({i})\nx{i}.f()\n",
    "attributes": "a.b{i} = a.b{p}\n",
    "one-attribute": "a.b = a.b + {i}\n",
    "self": "class K{i}:\n    def __init__(self, x):\n        self.x = x\n        f0(self.x)\n",
    "if": "if a == {i}:\n    b = {i}\n",
    "if-else": "if a:\n    v{n} = v{i}\nelse:\n    v{n} = -v{i}\n",
    "if-call": "if rank == 0:\n    torch.save(a, 'x{i}')\n",
    "assert": "assert a > {i}\n",
    "exit": "if a == {i}:\n    exit()\n",
    "for": "for i in range({i}):\n    f0(i)\n",
    "with": "with open('x{i}') as h:\n    h.read()\n",
    "try": "try:\n    import x{i}\nexcept ImportError:\n    x{i} = None\n",
    "imports": "import m{i}.x as y{i}\n",
    "from-imports": "from m{i} import x{i}, y{i}\n",
    "stars": "from m{i} import *\n",
    "dict": "d = {{'a': {i}, 'b': a}}\n",
    "dict-call": "g(**d)\n",
    "item": "e = d['x{i}']\n",
    "environ": "os.environ['V{i}'] = os.environ.get('V{p}', 'x')\n",
    "ranks": "r = int(os.environ['RANK'])\ntorch.cuda.set_device(r)\n",
    "options": "parser.add_argument('--x{i}', default={i})\n",
    "args": "args = parser.parse_args()\ng(args.x{i})\n",
    "loader": "loader = torch.utils.data.DataLoader(a, sampler=s, num_workers={i})\n",
    "sampler": "s = torch.utils.data.distributed.DistributedSampler(a)\ns.set_epoch({i})\n",
    "groups": "dist.init_process_group('nccl', init_method='tcp://localhost:{i}')\n",
    "ddp": "m = DDP(m.cuda(), device_ids=[{i}])\n",
    "spawn": "torch.multiprocessing.spawn(f0, nprocs={i}, args=(a,))\n",
    "lambda": "g{i} = lambda x: x\n",
    "comprehension": "l = [x for x in l if x]\n",
    "decorated": "@d{i}\ndef g{i}():\n    f0()\n",
    "global": "def h{i}():\n    global a\n    a = {i}\n",
    "match": "match a:\n    case {i}:\n        b = 1\n",
    "subprocess": "os.system('x{i}')\nimport subprocess\nsubprocess.run(['a', b])\n",
    "signal": "import signal\nsignal.signal(signal.SIGUSR1, f{i})\n",
    "comment": "# remark {i}\n",
    "suppression": "a = 1  # slurmgen: ignore[SG601] because {i}\n",
    "docstring": '"""text {i}"""\n',
    "non-ascii": "s = 'é😀'; g(s)\n",
    "walrus": "if (w := w + 1): pass\n",
    "conditional": "a = a if a else b\n",
    "conditional-chain": "v{n} = v{i} if v{z} else -v{i}\n",
    "percent": "s = '%d %s' % (s, s)\n",
    "format-call": "s = '{{}}{{}}'.format(s, s)\n",
}
PYTHON_PIECES = {
    "sum": " + {i}",
    "sum-names": " + v0",
    "text-sum": " + 'x'",
    "mod": " % a",
    "and": " and a",
    "compare": " < {i}",
    "call-chain": ".f()",
    "attributes": ".b",
    "subscripts": "[0]",
    "calls": "(a)",
    "tuple": ", {i}",
    "strings": " 'x{i}'",
    "digits": "9",
    "letters": "a",
    "conditional": " if a else b",
    "lambda-chain": " or (lambda: {i})",
    "equals": " = a",
}
PYTHON_NESTS = {
    "parens": ("(", ")"),
    "list": ("[", "]"),
    "dict": ("{{'a': ", "}}"),
    "call": ("f0(", ")"),
    "attribute-call": ("a.f(", ")"),
    "minus": ("-", ""),
    "not": ("not ", ""),
    "lambda": ("lambda: ", ""),
    "conditional": ("a if b else ", ""),
    "left": ("(a + ", ")"),
    "format": ("str(f'{{a}}' + ", ")"),
    "subscript": ("d[", "]"),
    "starred": ("f0(*", ")"),
    "int": ("int(", ")"),
    "await": ("(yield ", ")"),
}
# Indented by one more each.
PYTHON_BLOCKS = {
    "if": "if a{i}:",
    "for": "for i{i} in a:",
    "while": "while a:",
    "function": "def g{i}(x{i}=a):",
    "class": "class K{i}:",
    "with": "with a as b{i}:",
}


class Shape(NamedTuple):
    """language: bash or python. parts: of which the text is made, in the order of their use."""

    language: str
    name: str
    units: tuple[str, ...] = ()
    piece: str = ""
    nest: tuple[str, str] | None = None
    block: str = ""
    prefix: str = "x"

    def text(self, size: int) -> str:
        """About `size` characters, with a head and a tail that have a use for it."""
        head, tail = (
            (BASH_HEAD, BASH_TAIL) if self.language == "bash" else (PYTHON_HEAD, PYTHON_TAIL)
        )
        return head + self._grown(size) + "\n" + tail

    def _grown(self, size: int) -> str:
        if self.nest is not None:
            opening, closing = self.nest
            count = max(1, size // (len(_fill(opening, 10)) + len(_fill(closing, 10))))
            before = "".join(_fill(opening, i) for i in range(count))
            behind = "".join(_fill(closing, i) for i in reversed(range(count)))
            return f"{self.prefix}{before}a{behind}"
        if self.block:
            lines, length, number = [], 0, 0
            while length < size:
                lines.append(f"{' ' * number}{_fill(self.block, number)}\n")
                length += len(lines[-1])
                number += 1
            return "".join([*lines, " " * number, "a = 1\n"])
        units = self.units or (self.piece,)
        parts, length, number = [self.prefix] if self.piece else [], 0, 0
        while length < size:
            parts.append(_fill(units[number % len(units)], number // len(units)))
            length += len(parts[-1])
            number += 1
        return "".join(parts)


def _fill(template: str, number: int) -> str:
    return template.format(i=number, p=max(number - 1, 0), n=number + 1, z=0)


def single(language: str) -> list[Shape]:
    """A shape for everything that can be repeated or nested."""
    is_bash = language == "bash"
    units = BASH_UNITS if is_bash else PYTHON_UNITS
    pieces = BASH_PIECES if is_bash else PYTHON_PIECES
    nests = BASH_NESTS if is_bash else PYTHON_NESTS
    prefix = "x" if is_bash else "a = b"
    shapes = [Shape(language, name, units=(unit,)) for name, unit in units.items()]
    shapes += [Shape(language, f"{n}-line", piece=p, prefix=prefix) for n, p in pieces.items()]
    before = "" if is_bash else "v = "
    shapes += [Shape(language, f"{n}-nest", nest=p, prefix=before) for n, p in nests.items()]
    if not is_bash:
        shapes += [Shape(language, f"{n}-block", block=b) for n, b in PYTHON_BLOCKS.items()]
    return shapes


def mixed(language: str, random: Random) -> Shape:
    """Two to four units in turn."""
    units = BASH_UNITS if language == "bash" else PYTHON_UNITS
    names = random.sample(sorted(units), random.randint(2, 4))
    return Shape(language, "+".join(names), units=tuple(units[name] for name in names))
