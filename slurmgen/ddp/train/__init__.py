"""The loop that goes on where it was: its data, its state, and what it saves."""
