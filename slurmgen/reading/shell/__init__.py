"""The shell part of a batch script: what runs, where, and what each word expands to.

`text` holds shell code with the place of each character, `syntax` parses it (tree-sitter),
`expansion` turns nodes into words, `evaluate` goes through the statements in order,
`launch` peels srun, containers and launchers off a command. Nothing is run.
"""
