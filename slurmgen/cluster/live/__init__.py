"""The facts of a running Slurm as a profile, and a job held against them.

Pure: `slurmgen/slurm/live/` asks, `slurmgen/slurm/answers/` reads. scontrol's text is what an
ordinary user has on every version; its JSON came with 23.02 and changed its shape twice since.
"""
