import subprocess

for lr in ("1e-3", "3e-4"):
    subprocess.run(["srun", "--ntasks=1", "python", "train.py", "--lr", lr], check=True)
