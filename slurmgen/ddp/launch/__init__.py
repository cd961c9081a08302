"""From a process that srun, torchrun or nobody started to a rank that has met the others."""
