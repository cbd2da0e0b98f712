"""What the largest of several equal random values is expected to be."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist


@lru_cache(maxsize=1024)
def expected_maximum(count: int) -> float:
    """The expected maximum of ``count`` independent standard normal values (Blom 1958); 0 of one."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0
