"""How well a run uses its GPUs and CPUs."""
