"""What was measured?  A table of operator timings with a content hash; empty means datasheet only.

A plan names the ``profile_id`` of its table, so a new measurement can never return a plan made without it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from profiles.device import Provenance
from profiles.document import Document

Key = tuple[str, str, tuple[tuple[str, int], ...]]


class MeasuredPoint(Document):
    """One timing of one operator at one shape."""

    operator: str = Field(min_length=1, description="operator class: matmul, attention, norm, all_reduce, ...")
    dtype: str = Field(min_length=1)
    shape: dict[str, int] = Field(
        description="sizes that the time depends on, by name: m, n, k; size_bytes, group_size"
    )
    time_s: float = Field(gt=0)
    source: Provenance

    @property
    def key(self) -> Key:
        """What the point is about: operator, dtype and shape in a fixed order."""
        return self.operator, self.dtype, tuple(sorted(self.shape.items()))


class ProfileTable(Document):
    """Measurements of one device type.  The order in which points are given does not matter."""

    schema_version: Literal[1] = 1
    device: str = Field(default="", description="catalogue or own name of the device; empty in the empty table")
    points: tuple[MeasuredPoint, ...] = ()

    @field_validator("points")
    @classmethod
    def _in_fixed_order(cls, points: tuple[MeasuredPoint, ...]) -> tuple[MeasuredPoint, ...]:
        return tuple(sorted(points, key=lambda point: point.key))

    @model_validator(mode="after")
    def _one_point_a_key(self) -> Self:
        keys = [point.key for point in self.points]
        twice = next((key for key, following in pairwise(keys) if key == following), None)
        if twice is not None:
            raise ValueError(f"{twice[0]} {twice[1]} {dict(twice[2])} is given twice; keep one")
        return self

    @property
    def profile_id(self) -> str | None:
        """SHA-256 of the table; None for the empty one (datasheet only)."""
        return self.content_hash() if self.points else None
