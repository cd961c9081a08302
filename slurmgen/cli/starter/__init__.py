"""What `slurmgen init` finds in a project and writes into it."""
