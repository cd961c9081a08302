import os

print("task", os.environ.get("SLURM_ARRAY_TASK_ID", "none"))
