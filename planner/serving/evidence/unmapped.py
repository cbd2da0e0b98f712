"""A measured row that cannot be predicted."""

from __future__ import annotations

from planner.errors import DocumentInvalid


class RowUnmapped(DocumentInvalid):
    """A row lacks something, contradicts itself, or needs what the prediction does not have; ``what`` says which."""
