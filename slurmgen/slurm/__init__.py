"""Slurm itself: its options, grammars, directives, and the Slurm of this machine."""
