"""The Slurm of this machine: the only package, with `sandbox` and `ddp`, that runs processes."""
