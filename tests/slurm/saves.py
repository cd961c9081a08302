"""A program that is told to save: exits 75 after USR1, USR2 or TERM, and goes on when restarted.

The ranks end at different times, as real ones do: rank 0 takes a second to save.
"""

import os
import pathlib
import signal
import sys
import time

status = int(os.environ.get("STATUS", "75"))
rank = int(os.environ.get("SLURM_PROCID", "0"))
restart = int(os.environ["SLURMGEN_RESTART"])
told: list[str] = []


def tell(number, _frame):
    if not told:
        told.append(signal.Signals(number).name)


for name in ("USR1", "USR2", "TERM"):
    signal.signal(getattr(signal, f"SIG{name}"), tell)
wanted = os.environ.get("RUNS", "2")
print(f"rank {rank} run {restart} ready for {os.environ['SLURMGEN_SIGNAL']}", flush=True)
if restart + 1 >= int(wanted):
    print(f"rank {rank} done", flush=True)
    sys.exit(0)
if "AT_ONCE" not in os.environ:
    while not told:
        time.sleep(0.05)
time.sleep(0.3)
if rank == 0:
    time.sleep(0.8)
    if "PROGRESS" in os.environ:
        pathlib.Path(os.environ["SLURMGEN_PROGRESS"]).write_text(f"{restart}\n")
# Python takes its handlers back while it ends, and a late signal would then be its status.
for name in ("USR1", "USR2", "TERM"):
    signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN)
print(f"rank {rank} saved after {''.join(told)}", flush=True)
sys.exit(status)
