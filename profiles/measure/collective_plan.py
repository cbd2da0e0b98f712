"""The plan of a run over collectives: which of them, of which sizes, for how long."""

from __future__ import annotations

import math
from dataclasses import dataclass

from profiles.errors import DocumentInvalid
from profiles.measure.plan import DEFAULT_BUDGET_S, check_dtypes
from profiles.observations.records import CollectiveOperation

FULL_SIZES: tuple[int, ...] = (
    *(1 << power for power in range(10, 18, 2)),
    *(1 << power for power in range(18, 27)),
    *(1 << power for power in range(28, 31, 2)),
)
"""1 KiB to 1 GiB: x4 up to 256 KiB, x2 up to 64 MiB, where the algorithms switch, x4 above."""
LARGEST_SIZE = 1 << 34


@dataclass(frozen=True, slots=True)
class CollectivePlan:
    """One run over all ranks.  ``devices_per_node`` None = as torchrun started them.

    all_reduce and reduce_scatter are measured in ``dtypes`` (sums depend on it), the others in the first only.
    """

    sizes: tuple[int, ...] = FULL_SIZES
    operations: tuple[CollectiveOperation, ...] = ()
    dtypes: tuple[str, ...] = ("bf16", "fp32")
    backend: str = "auto"
    devices_per_node: int | None = None
    collectives: bool = True
    overlap: bool = True
    overlap_bytes: int = 64 << 20
    overlap_matmul: int | None = None
    """m = n = k of the product that runs beside the communication; None = 4096, on a CPU 256."""
    overlap_part: float = 0.2
    """Part of the time that the overlap may take."""
    time_budget_s: float = DEFAULT_BUDGET_S
    warm_ups: int = 5
    repeats: int = 20
    fewest_repeats: int = 3
    sample_s: float = 0.005
    """Back-to-back calls of one sample last about this long."""
    min_time_s: float = 0.05
    blocking_up_to_bytes: int = 64 << 10
    """Sizes that are also measured one by one, each after a barrier: the latency that a lone call sees."""
    tool_version: str = ""

    def __post_init__(self) -> None:
        """Raises DocumentInvalid for unknown dtypes, impossible sizes and budgets."""
        check_dtypes(self.dtypes)
        bad = [size for size in self.sizes if not 1 <= size <= LARGEST_SIZE]
        if bad or not self.sizes:
            raise DocumentInvalid(
                f"{bad[0] if bad else 'nothing'} is no size of a message",
                where="--sizes",
                hint=f"give bytes from 1 to {LARGEST_SIZE}",
            )
        if not (math.isfinite(self.time_budget_s) and self.time_budget_s > 0):
            raise DocumentInvalid(
                f"{self.time_budget_s} s is no time to measure in", where="--time-budget", hint="give seconds above 0"
            )

    def ordered_sizes(self) -> list[int]:
        """From coarse to fine: every fourth first, then the second, then the rest; a budget thins evenly."""
        sizes = sorted(set(self.sizes))
        places = sorted(range(len(sizes)), key=lambda place: (place % 4 != 0, place % 2 != 0, place))
        return [sizes[place] for place in places]
