"""Folders that run an operator-level sharding plan."""
