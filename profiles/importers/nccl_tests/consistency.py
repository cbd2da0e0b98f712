"""Consistency checks of time, bandwidths and size of a run.

``algbw`` is size over time in every version of the tool, and ``busbw`` is ``algbw`` times a factor that depends on the
number of ranks alone.  The first settles the unit of time where no line of units is printed; both find rows whose
columns were mixed up.  The oldest releases print the bus bandwidth of all_gather, reduce_scatter and all_to_all in both
columns: size over time is then n/(n - 1) times it.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from profiles.importers.nccl_tests.columns import UNKNOWN
from profiles.importers.nccl_tests.rows import Row
from profiles.importers.nccl_tests.runs import Run
from profiles.importing.imported import Imported

_LEAST_BANDWIDTH = 0.2
_LEAST_TIME = 1e-6
_MOST_OFF = 0.1
_FEW = 0.2
"""Share of rows that may contradict the others and be called damaged; more of them are a property of the run."""


def check_consistency(run: Run, imported: Imported) -> None:
    """Correct the unit of time where none is printed; report the rows that contradict themselves or the others."""
    factors = _settle_unit(run, imported)
    if factors is not None:
        odd = {line for line, found in factors.items() if any(not _near(factor, 1.0) for factor in found)}
        for line in sorted(odd):
            imported.bad(line, "size over time is not the algorithm bandwidth: are columns mixed up?")
        run.contradictory.update(odd)
    odd = _odd_ratios(run)
    for line in sorted(odd):
        imported.bad(line, "the ratio of bus to algorithm bandwidth is not that of the other rows")
    run.contradictory.update(odd)


def _settle_unit(run: Run, imported: Imported) -> dict[int, list[float]] | None:
    """Settle the unit of time; per row the factors by which bandwidth and time differ, None where all differ."""
    columns = run.columns or UNKNOWN
    factors = {row.line: _factors(row, columns.unit_s) for row in run.rows}
    every = [factor for found in factors.values() for factor in found]
    if not every:
        return {}
    middle = median(every)
    share = _share_of_both(run, middle if middle < 100 else middle / 1000)
    if share is not None:
        run.bus_twice = True
        factors = {line: [factor * share for factor in found] for line, found in factors.items()}
        middle *= share
    if _near(middle, 1.0):
        return factors
    if not columns.unit_printed and _near(middle / 1000, 1.0):
        run.columns = replace(columns, unit_s=columns.unit_s * 1000, unit_printed=True)
        imported.flag("unit-inferred", "the table prints no unit; its bandwidths show milliseconds", run.first_line)
        return {line: [factor / 1000 for factor in found] for line, found in factors.items()}
    imported.flag(
        "bandwidth-differs",
        f"the algorithm bandwidths are not size over time (by a factor of {middle:.4g}); the times are kept",
        run.first_line,
    )
    return None


def _share_of_both(run: Run, middle: float) -> float | None:
    """(n - 1)/n where both columns hold the bus bandwidth, told by size over time; None where they do not."""
    columns = run.columns or UNKNOWN
    bounds = [block.bounds for row in run.rows for block in row.blocks if block.bounds is not None]
    if columns.counts_wrong or not any(name in columns.block for name in ("error", "res")):
        return None
    if not bounds or not all(each.low <= 1 <= each.high for each in bounds):
        return None
    ranks = max((rank.rank for rank in run.ranks), default=0) + 1
    if ranks == 1:
        ranks = round(middle / (middle - 1)) if middle > 1.05 else 1
    if ranks < 2:
        return None
    expected = ranks / (ranks - 1)
    return 1 / expected if abs(middle - expected) < min(0.03, abs(middle - 1)) else None


def _factors(row: Row, unit_s: float) -> list[float]:
    """(Size over time) over the printed bandwidth, for each measurement with enough digits."""
    return [
        row.size / (block.time * unit_s) / (block.algbw * 1e9)
        for block in row.blocks
        if block.algbw >= _LEAST_BANDWIDTH and block.time > _LEAST_TIME and row.size > 0
    ]


def _odd_ratios(run: Run) -> set[int]:
    """Lines whose ratio of bandwidths cannot be the one that most rows show; empty where there is no such ratio."""
    known = [
        (row.line, block.bounds)
        for row in run.rows
        for block in row.blocks
        if block.bounds is not None and row.line not in run.contradictory
    ]
    certain = [bounds for _, bounds in known if bounds.high - bounds.low < 0.02]
    if len(certain) < 3:
        return set()
    middle = median((bounds.low + bounds.high) / 2 for bounds in certain)
    # The median of rounded numbers is itself a little off.
    odd = {line for line, bounds in known if not bounds.low - 0.01 <= middle <= bounds.high + 0.01}
    return odd if len(odd) <= max(1, _FEW * len(run.rows)) else set()


def _near(value: float, target: float) -> bool:
    return abs(value - target) <= _MOST_OFF * target
