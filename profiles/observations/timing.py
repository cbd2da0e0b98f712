"""``Timing``: a time, over how many repetitions, and which statistic it is."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal

Statistic = Literal["median", "mean", "min", "max", "single", "unknown"]


@dataclass(frozen=True, slots=True)
class Timing:
    """One measured duration in seconds and its spread where the source gives one.

    ``statistic`` says what ``time_s`` is over the repetitions.  Unknown parts stay None: a spread is never made up.
    """

    time_s: float
    statistic: Statistic = "unknown"
    num_samples: int | None = None
    min_s: float | None = None
    p10_s: float | None = None
    p90_s: float | None = None
    max_s: float | None = None
    std_s: float | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for NaN, infinity, negative or zero times: callers turn it into a bad row."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name.endswith("_s") and value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{each.name} is {value}; a duration is a finite number, not negative")
        if self.time_s <= 0:
            raise ValueError("the time is zero; nothing runs in no time")
        if self.num_samples is not None and self.num_samples < 1:
            raise ValueError(f"num_samples is {self.num_samples}; at least one repetition is needed")
