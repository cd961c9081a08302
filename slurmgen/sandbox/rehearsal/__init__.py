"""A job on a real Slurm with pretend nodes, its program replaced by one that tells what it sees."""
