"""Cluster profiles: the facts that differ from site to site."""
