"""One job.yaml in, one sbatch script out that runs PyTorch right on Slurm."""

# Imported by every command and on every compute node: keep it this light.
__version__ = "0.1.0"
