"""What the ranks measure, and what the log and the file say of it."""

from __future__ import annotations

import os
import subprocess
import sys

from slurmgen.ddp.measure.cpu_counters import cpu_seconds


def test_cpu_time_of_children_that_live_and_that_have_ended() -> None:
    work = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    before = cpu_seconds()
    command = [sys.executable, "-c", f"{work}print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive = cpu_seconds()
        assert alive - before >= 0.25
        child.communicate(b"\n")
    # The kernel counts in ticks.
    assert cpu_seconds() >= alive - 2 / os.sysconf("SC_CLK_TCK")
