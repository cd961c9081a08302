import os

fold = int(os.environ["SLURM_ARRAY_TASK_ID"])
print("fold", fold)
