"""The Slurm of this machine, whose commands are run here.

Outside it, only `sandbox/` and `ddp/` start processes; `slurmgen run` becomes one.
"""
