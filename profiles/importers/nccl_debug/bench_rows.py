"""All-reduce times between the log lines: rows of the ``torch.distributed`` bench that BigScience used.

Each rank prints, trial by trial, ``<rank>:``, `` duration: 1.5311 sec``, `` algo throughput: 41799543931.1436 bps,
...`` and `` busbw: 40.4933 Gbps``. The bench counts an all_reduce twice: throughput = 2 x size x 8 / duration, bus
bandwidth = size x 8 / duration x 2 (n - 1) / n, so their ratio is (n - 1) / n. The size is not printed; it is the
number with the fewest digits that agrees with every row (durations are rounded to 0.1 ms). The time of a trial is its
slowest rank's. Source: bigscience-workshop/bigscience experiments/bandwidth/all_reduce_bench.py; the gist it names.
"""

from __future__ import annotations

import math
import re
import statistics
from dataclasses import dataclass, field

from profiles.importing.imported import Imported
from profiles.observations.records import CollectiveObservation
from profiles.observations.timing import Timing

_RANK = re.compile(r"(\d{1,6}):\s*$")
_DURATION = re.compile(r"\s*duration:\s*(\S+)\s*sec")
_THROUGHPUT = re.compile(r"\s*algo throughput:\s*(\S+)\s*bps")
_BUS = re.compile(r"\s*busbw:\s*(\S+)\s*Gbps")
_ROUNDING_S = 0.5e-4


@dataclass(slots=True)
class BenchRows:
    """Rows as they come: durations by rank, throughputs and bus bandwidths in order."""

    trials: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    pending: list[float] = field(default_factory=list)
    sizes: list[tuple[float, float]] = field(default_factory=list)
    throughputs: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)

    def take(self, number: int, text: str) -> None:
        """One line of the log that is not NCCL's."""
        if (rank := _RANK.match(text)) is not None:
            self.waiting.append(int(rank.group(1)))
        elif (duration := _DURATION.match(text)) is not None:
            value = self._number(number, duration.group(1), "duration")
            if value is not None and self.waiting:
                self.trials.setdefault(self.waiting.pop(), []).append((value, number))
                self.pending.append(value)
        elif (throughput := _THROUGHPUT.match(text)) is not None:
            value = self._number(number, throughput.group(1), "throughput")
            if value is not None and self.pending:
                self._size(value)
        elif (bus := _BUS.match(text)) is not None:
            value = self._number(number, bus.group(1), "bus bandwidth")
            if value is not None and self.throughputs:
                self.ratios.append(value * 1e9 / self.throughputs.pop(0))

    def _number(self, line: int, text: str, what: str) -> float | None:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value > 0):
            self.bad.append((line, f"the {what} is '{text[:30]}'"))
            return None
        return value

    def _size(self, throughput: float) -> None:
        """The range of twice-counted bytes that this throughput and its duration allow."""
        duration = self.pending.pop(0)
        self.throughputs.append(throughput)
        low, high = max(duration - _ROUNDING_S, 0.0), duration + _ROUNDING_S
        self.sizes.append((throughput * low / 8, throughput * high / 8))

    @property
    def group_size(self) -> int | None:
        """Ranks that the ratio of the two bandwidths implies: (n - 1) / n, or 2 (n - 1) / n when counted once."""
        if not self.ratios:
            return None
        ratio = statistics.median(self.ratios)
        share = ratio if ratio < 1 else ratio / 2
        return round(1 / (1 - share)) if 0 < share < 0.99999 else None

    def size_bytes(self) -> int | None:
        """The tensor's size; None where the rows do not agree on one."""
        if not self.sizes or not self.ratios:
            return None
        # Interleaved output pairs a few throughputs with another rank's duration: the middle rows decide.
        middle = statistics.median((low + high) / 2 for low, high in self.sizes)
        near = [(low, high) for low, high in self.sizes if abs((low + high) / 2 / middle - 1) < 0.02]
        if 2 * len(near) < len(self.sizes):
            return None
        low, high = max(each[0] for each in near), min(each[1] for each in near)
        if low > high:
            low, high = middle * 0.9995, middle * 1.0005
        counted = 2 if statistics.median(self.ratios) < 1 else 1
        return _roundest(low / counted, high / counted)


def _roundest(low: float, high: float) -> int | None:
    """The whole number from low to high with the fewest significant digits."""
    if not 0 < low <= high < 2**62:
        return None
    for exponent in range(18, -1, -1):
        step = 10**exponent
        candidate = math.ceil(low / step) * step
        if candidate <= high:
            return int(candidate)
    return round((low + high) / 2)


def observations(
    rows: BenchRows, imported: Imported, *, num_nodes: int | None, size_given: str | None
) -> list[CollectiveObservation]:
    """One observation a trial; the first trial is warm-up and is left out."""
    for line, what in rows.bad:
        imported.bad(line, what, "the bench prints positive numbers")
    num_trials = max(map(len, rows.trials.values()), default=0)
    if not num_trials:
        return []
    size = int(size_given) if size_given and size_given.isdigit() and len(size_given) < 18 else rows.size_bytes()
    group_size = rows.group_size or len(rows.trials)
    if size is None:
        imported.flag("size-unknown", "rows of an all_reduce bench do not tell the size; give --set size_bytes=...")
        imported.skip("bench rows without a size", sum(map(len, rows.trials.values())))
        return []
    if not size_given:
        imported.flag("size-inferred", f"the bench does not print its size; {size:,} bytes agree with all its rows")
    if group_size != len(rows.trials):
        imported.flag("ranks-differ", f"bandwidths imply {group_size} ranks, {len(rows.trials)} ranks print rows")
    found: list[CollectiveObservation] = []
    for trial in range(num_trials):
        times = [each[trial] for each in rows.trials.values() if len(each) > trial]
        if trial == 0 and num_trials > 1:
            imported.skip("first trial (warm-up) of the bench", len(times))
            continue
        found.append(_observation(trial, times, size, group_size, num_nodes))
    return found


def _observation(
    trial: int, times: list[tuple[float, int]], size: int, group_size: int, num_nodes: int | None
) -> CollectiveObservation:
    durations = [duration for duration, _ in times]
    per_node = group_size // num_nodes if num_nodes and group_size % num_nodes == 0 else None
    return CollectiveObservation(
        operation="all_reduce",
        size_bytes=size,
        group_size=group_size,
        timing=Timing(
            time_s=max(durations),
            statistic="max",
            num_samples=len(durations),
            min_s=min(durations),
            max_s=max(durations),
        ),
        dtype="fp32",
        num_nodes=num_nodes if per_node else None,
        devices_per_node=per_node,
        concurrent_groups=1,
        in_place=True,
        reduction="sum",
        launch="blocking",
        detail={"trial": trial, "num_ranks_reporting": len(durations)},
        row=min(line for _, line in times),
    )
