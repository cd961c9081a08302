"""The command line: what is typed, what runs it, and what is printed."""
