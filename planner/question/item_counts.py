"""How many images or clips samples have, where not all have as many: a distribution.

As a document, or as text whose parts are joined by ``+``::

    mean:3.2             Poisson with this mean
    p50:1+p99:8          quantiles, linear between two neighbours, constant beyond the outer ones
    0:120+1:400+4:80     a histogram: samples by their number of items

Ranks take samples as they come.  With ``n`` samples a rank, mean ``u`` and deviation ``s`` of one sample, a rank's
items are near a normal distribution of mean ``n u`` and deviation ``s sqrt(n)``, so that the fullest of ``N`` ranks has
``n u (1 + s / u E(N) / sqrt(n))`` (``planner.predict.cost.uneven_items``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Self

from pydantic import Field, model_validator

from planner.question.sequences import MOST_LENGTHS, Pairs
from profiles.document import Document

MOST_ITEMS = 1e6
SURELY = 4.75
"""Deviations above the mean that one micro-batch in a million exceeds: what memory is kept for."""
_FORM = "write mean:3.2, quantiles as p50:1+p99:8, or samples by their number of items as 0:120+1:400"


class ItemCounts(Document):
    """The number of items of a sample as a distribution: a mean, quantiles or a histogram."""

    mean: float | None = Field(
        default=None,
        gt=0,
        le=MOST_ITEMS,
        exclude_if=lambda value: value is None,
        description="mean number of a sample, Poisson distributed",
    )
    percentiles: Pairs | None = Field(
        default=None,
        min_length=2,
        max_length=101,
        exclude_if=lambda value: value is None,
        description="number of a sample by percentile, such as 50: 1, 99: 8; linear between two",
    )
    histogram: Pairs | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_LENGTHS,
        exclude_if=lambda value: value is None,
        description="samples by their number, such as 0: 120, 1: 400",
    )

    @model_validator(mode="before")
    @classmethod
    def _said(cls, data: Any) -> Any:
        """Text is its parts, a mapping its pairs, ascending."""
        if isinstance(data, str):
            return _parsed(data)
        if not isinstance(data, Mapping):
            return data
        said = dict(data)
        for name in ("percentiles", "histogram"):
            given = said.get(name)
            if isinstance(given, Mapping):
                said[name] = sorted((float(key), value) for key, value in given.items())
        return said

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        said = [self.mean, self.percentiles, self.histogram]
        if sum(each is not None for each in said) != 1:
            raise ValueError(f"one of a mean, percentiles and a histogram: {_FORM}")
        for at, items in self.percentiles or ():
            if not 0 <= at <= 100 or not 0 <= items <= MOST_ITEMS:
                raise ValueError(f"percentiles lie from 0 to 100, numbers from 0 to {MOST_ITEMS:,.0f}")
        for (left, low), (right, high) in pairwise(self.percentiles or ()):
            if right <= left or high < low:
                raise ValueError("percentiles: ascending, with numbers that do not fall")
        if self.histogram is not None:
            numbers, samples = zip(*self.histogram, strict=True)
            if len(set(numbers)) < len(numbers) or not all(0 <= each <= MOST_ITEMS for each in numbers):
                raise ValueError(f"histogram: numbers from 0 to {MOST_ITEMS:,.0f}, each once")
            if not all(0 <= each < math.inf for each in samples) or sum(samples) <= 0:
                raise ValueError("histogram: counts of samples must not be negative and not all zero")
        if self.expected <= 0:
            raise ValueError("no sample has any: leave it out")
        return self

    @property
    def expected(self) -> float:
        """Items of a sample on average."""
        return self._moments[0]

    @property
    def variation(self) -> float:
        """Standard deviation over mean, of one sample."""
        mean, square = self._moments
        return math.sqrt(max(square - mean**2, 0.0)) / mean

    @property
    def most(self) -> float:
        """Items that no sample exceeds; infinite of a mean alone."""
        if self.histogram is not None:
            return max(items for items, samples in self.histogram if samples > 0)
        return math.inf if self.percentiles is None else self.percentiles[-1][1]

    def words(self) -> str:
        """For a sentence: "3.2 of a sample on average, deviation 1.8"."""
        return f"{self.expected:.4g} of a sample on average, deviation {self.expected * self.variation:.3g}"

    @property
    def _moments(self) -> tuple[float, float]:
        """Mean and mean square."""
        if self.mean is not None:
            return self.mean, self.mean**2 + self.mean
        if self.histogram is not None:
            total = sum(samples for _, samples in self.histogram)
            return tuple(  # type: ignore[return-value]
                sum(items**power * samples for items, samples in self.histogram) / total for power in (1, 2)
            )
        points = self.percentiles or ()
        points = ((0.0, points[0][1]), *points, (100.0, points[-1][1]))
        mean = square = 0.0
        for (left, low), (right, high) in pairwise(points):
            share = (right - left) / 100.0
            mean += share * (low + high) / 2.0
            # The mean square of what is even between two values.
            square += share * (low**2 + low * high + high**2) / 3.0
        return mean, square


def _parsed(text: str) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for part in text.split("+"):
        name, colon, value = (word.strip() for word in part.partition(":"))
        try:
            number = float(value)
            if name == "mean" and not said:
                said["mean"] = number
            elif name.startswith("p"):
                said.setdefault("percentiles", []).append((float(name[1:]), number))
            else:
                said.setdefault("histogram", []).append((float(name), number))
        except ValueError:
            colon = ""
        if not colon:
            raise ValueError(f"{text[:40]!r} is no distribution: {_FORM}")
    return {name: sorted(value) if isinstance(value, list) else value for name, value in said.items()}
