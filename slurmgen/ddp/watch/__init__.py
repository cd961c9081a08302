"""The supervisors beside the ranks: how a rank's failure or hang is seen, and told to all."""
