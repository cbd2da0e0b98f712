"""The reason why a measured run cannot be predicted, counted in the report."""

from __future__ import annotations

from planner.errors import DocumentInvalid


class RowUnmapped(DocumentInvalid):
    """A row lacks something, contradicts itself, or needs what the cost model does not have; ``what`` says which."""
