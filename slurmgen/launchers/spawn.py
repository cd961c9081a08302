"""spawn: a task per node, and the program starts the node's ranks by itself."""

from __future__ import annotations

from slurmgen.launchers import PROGRAM, Launcher


class Spawn(Launcher):
    """A task per node; the program forks a rank per GPU."""

    name = "spawn"
    about = "a task per node, where the program starts its own ranks"
    how = "srun starts one program per node, which starts its own ranks"
    ranks = PROGRAM
    entrypoint = "spawn"
    dies_of_signals = "the process that started the ranks gets it too, dies of it, and ends them"
    loses_status = (
        "the process that started the ranks gets the signal too and dies of it, and their "
        "status 75 with it"
    )
    unstamped = "# What the one task of each node does first. The program"


LAUNCHER = Spawn()
