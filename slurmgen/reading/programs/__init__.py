"""Python programs read with ``ast``: what they import, call, read, write and set up.

    from slurmgen.reading.programs import distributed, read

    program = read(Path("train.py"))             # never raises; .readable says whether it worked
    program.path, program.error, program.modules # local modules that were read too: name -> path

Facts are of the file and of the local modules it imports (one level), in source order; every fact
has a ``place`` (slurmgen.lint.finding.Place, its path set).

    program.calls        Call(name, method, receiver, args, keywords, is_open, conditions, loops,
                              function, value, place, node, site)
    program.env_reads    EnvRead(name, how, default, is_int, conditions, place)
    program.env_writes   EnvWrite(name, how, value, conditions, place)
    program.arguments    Argument(flags, dest, default, action, is_required, place)
    program.imports      Import(name, place)
    program.missing      imported modules that are not beside the file (torch is one of them)

Names are dotted and canonical, whatever the imports and aliases: after ``from torch.nn.parallel
import DistributedDataParallel as DDP`` the call ``DDP(net)`` has the name
``torch.nn.parallel.DistributedDataParallel``; ``pl.Trainer``, ``L.Trainer`` and
``pytorch_lightning.Trainer`` are all ``lightning.Trainer``
(slurmgen/reading/programs/torch_names.py).

    for call in program.called("torch.distributed.init_process_group", "deepspeed."):
        call.argument(1, "init_method")          # a Value, or None where it isn't passed
        call.text(1, "init_method")              # the string literal, or None
        call.number(3, "world_size")             # the whole number, or None
    for call in program.methods("split"):        # x.split(...), whatever x is
        call.receiver                            # what x is: a Value

What an expression is known to be is a Value (slurmgen/reading/programs/values.py), followed through
names, functions, parameters, ``self``, mp.spawn, command line options and local modules;
``int(x)`` is x:

    value.kind == "env" and value.name == "SLURM_NODELIST"    # os.environ["..."], .get, getenv
    value.kind == "constant" and value.literal == "127.0.0.1"
    for part in walk(value): ...                              # the value and all inside it
    for item in alternatives(value, present): ...             # what it may be, on every path

``present(name)`` says whether an environment variable is set where the program runs (True, False
or None for not known): `slurmgen.lint.facts.python.runs(job)` yields
Run(launch, program, extent, present) for each program of a job.

Recipes:

    # a port written in Python
    [w for w in program.writes("MASTER_PORT") if w.value.is_constant]
    # MASTER_ADDR = localhost
    [w for w in program.writes("MASTER_ADDR") if w.value.literal in ("localhost", "127.0.0.1")]
    # tcp://host:port
    [g for g in distributed.groups(program) if g.call.text(1, "init_method")]
    # os.environ["SLURM_NODELIST"].split(",")
    [c for c in program.methods("split") if c.receiver.kind == "env" and c.receiver.name in (...)]
    # int(os.environ["SLURM_TASKS_PER_NODE"]), also through a variable
    [c for c in program.called("int") if c.args and c.args[0].kind == "env"]
    # only where it can run: its tests may hold in this environment, its function is used
    [c for c in program.calls if program.is_reached(c, present)]

Further modules: ``roles`` says what a number or a device means (rank, local rank, ...);
``distributed`` finds groups, devices, spawns and wrapped models; ``data`` loaders, samplers and
saves; ``processes`` signal handlers and commands; ``frameworks`` Lightning and its like.
"""

from __future__ import annotations

from slurmgen.reading.programs.facts import Argument, Call, Condition, EnvRead, EnvWrite, Import
from slurmgen.reading.programs.program import Program, read
from slurmgen.reading.programs.values import Value, alternatives, truth, walk

__all__ = [
    "Argument",
    "Call",
    "Condition",
    "EnvRead",
    "EnvWrite",
    "Import",
    "Program",
    "Value",
    "alternatives",
    "read",
    "truth",
    "walk",
]
