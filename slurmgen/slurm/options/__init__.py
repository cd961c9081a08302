"""sbatch's options: which there are, what their values may be, and which exclude each other."""
