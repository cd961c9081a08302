import os
import signal
import subprocess


def again(signum, frame):
    subprocess.check_call(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]])


signal.signal(signal.SIGUSR1, again)
