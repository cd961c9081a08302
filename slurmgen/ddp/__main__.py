"""``python -m slurmgen.ddp TARGET [ARGS...]``."""

import sys

from slurmgen.ddp.launch.entry import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
