"""Ranks for a corpus of plans, forked from a server that has imported torch and a back-end already."""
