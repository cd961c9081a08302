"""Checkpoints on disk, each complete and proved so."""
