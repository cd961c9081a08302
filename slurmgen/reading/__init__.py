"""Other people's code: batch scripts, their shell code, and the programs that they start."""
