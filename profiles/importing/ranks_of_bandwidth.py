"""The number of ranks, from the bandwidths that the tool itself computed from its communicator.

    bus / algorithm bandwidth = 2(n - 1)/n for all_reduce;  (n - 1)/n for all_gather, reduce_scatter, all_to_all,
    gather, scatter;  1 for the others

Both are printed rounded, so each row allows an interval of ratios; the rows of one run share n, so the intervals are
intersected.  With two decimals and 480 GB/s one row already tells 64 from 65 ranks.  Source: NVIDIA/nccl-tests
doc/PERFORMANCE.md and src/*.cu (getBw).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

_WHOLE: dict[str, float] = {
    "all_reduce": 2.0,
    "all_gather": 1.0,
    "reduce_scatter": 1.0,
    "all_to_all": 1.0,
    "gather": 1.0,
    "scatter": 1.0,
}
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class RatioBounds:
    """Least and largest ratio of bus to algorithm bandwidth that the printed digits allow."""

    low: float
    high: float
    bandwidth: float
    """The algorithm bandwidth itself: rows with more of it carry more digits."""


@dataclass(frozen=True, slots=True)
class RanksFound:
    """Rank counts that fit the bandwidths; ``count`` is set where only one does."""

    least: int
    most: int | None
    ratio: float

    @property
    def count(self) -> int | None:
        """The number of ranks where it is certain."""
        return self.least if self.least == self.most else None

    def allows(self, count: int) -> bool:
        """Whether ``count`` ranks are possible."""
        return self.least <= count and (self.most is None or count <= self.most)


def ratio_bounds(algorithm: str, bus: str) -> RatioBounds | None:
    """The interval of bus / algorithm bandwidth for two numbers as printed; None where they are too small to tell."""
    first, second = _with_error(algorithm), _with_error(bus)
    if first is None or second is None or first[0] - first[1] <= 0:
        return None
    (value, error), (top, top_error) = first, second
    return RatioBounds(max(0.0, top - top_error) / (value + error), (top + top_error) / (value - error), value)


def common_bounds(rows: Iterable[RatioBounds]) -> tuple[RatioBounds | None, bool]:
    """The interval that all rows share, and whether they share one; without one the largest bandwidth decides."""
    low, high, best = -math.inf, math.inf, None
    for row in rows:
        low, high = max(low, row.low), min(high, row.high)
        if best is None or row.bandwidth > best.bandwidth:
            best = row
    if best is None:
        return None, True
    if low > high * (1 + 1e-12):
        return best, False
    return RatioBounds(low, high, best.bandwidth), True


def ranks_found(operation: str, bounds: RatioBounds | None) -> RanksFound | None:
    """Rank counts that give a ratio in ``bounds``; None where the operation's ratio says nothing or none fits."""
    whole = _WHOLE.get(operation)
    if whole is None or bounds is None or bounds.low >= whole:
        return None
    least = max(1, math.ceil(whole / (whole - bounds.low) - _SLACK))
    # A ratio that may be the limit itself allows any number of ranks.
    most = None if bounds.high >= whole * (1 - 1e-12) else math.floor(whole / (whole - bounds.high) + _SLACK)
    if most is not None and most < least:
        return None
    return RanksFound(least, most, (bounds.low + bounds.high) / 2)


def _with_error(text: str) -> tuple[float, float] | None:
    """A printed number and half a unit of its last digit."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or not -30 < exponent < 30:
        return None
    return float(number), 0.5000001 * 10.0**exponent
