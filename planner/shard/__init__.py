"""Operator-level sharding of a graph: strategies of every operator, chosen together."""
