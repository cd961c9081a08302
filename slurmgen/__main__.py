"""`python -m slurmgen`: the `slurmgen` command, where it is not on PATH."""

from slurmgen.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
