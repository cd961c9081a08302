"""Slurm's grammars, a module each: times, sizes, lists of hosts, dependencies and so on."""
