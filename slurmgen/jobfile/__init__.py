"""The job file: its model, the grammar of each value, and what its keys mean together."""
