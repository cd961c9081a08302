"""Every name that the built-in templates set, read or give a function; read from them by a test.

`pytest --update-golden tests/unit/jobfile/test_reserved.py` writes it again. Slurm's own variables
are known by their prefix.
"""

from __future__ import annotations

NAMES = frozenset(
    "BASH_REMATCH IFS LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT NODE_RANK "
    "OMP_NUM_THREADS PATH PWD RANK SECONDS SLURMGEN_FAILURE SLURMGEN_LAUNCHER SLURMGEN_PROGRESS "
    "SLURMGEN_RESTART SLURMGEN_SECRET SLURMGEN_SIGNAL SLURMGEN_WORLD_SIZE UV_NO_SYNC WORLD_SIZE "
    "after before caught cause command commas first_node init job look_for_obstacles notes "
    "on_signal on_term pause preempted ran restarts state status step task terminated why".split()
)
