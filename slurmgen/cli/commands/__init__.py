"""A module per verb. Each takes plain values, prints through report.py, returns a status."""
