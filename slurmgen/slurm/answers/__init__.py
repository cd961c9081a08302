"""What Slurm's commands print, and the facts in it. Pure: `slurm/live` asks, this package reads."""
