"""What a running Slurm says of itself: its texts, the facts in them, and the profile they make.

Pure: `slurmgen/slurm/cluster.py` asks, this package reads. scontrol's text is what an ordinary
user has on every version; its JSON came with 23.02 and changed its shape twice since.
"""
