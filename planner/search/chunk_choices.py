"""The numbers of chunks a device, and the micro-batch groups, that a schedule may have in a back-end."""

from __future__ import annotations

from planner.backends.rules.columns import Columns
from planner.backends.rules.legality import EMPTY_ENDS
from planner.backends.rules.pipeline import interleaved_group_size
from planner.search.choices import virtual_stages
from planner.strategy.schedules import GROUPED_SCHEDULES, LOOPED_SCHEDULES, V_SCHEDULES


def chunk_choices(columns: Columns, name: str, pp: int, count: int, layers: int) -> list[tuple[int, int]]:
    """(vpp, micro-batch group) choices of one schedule for ``count`` micro-batches; a group of 0 is none."""
    if pp == 1:
        return [(1, 0)]
    if name in LOOPED_SCHEDULES:
        groups = _groups(columns, name, pp, count)
        chunks = virtual_stages(layers, pp, empty_ends=columns.empty_ends)
        return [(vpp, group) for vpp in chunks for group in groups]
    if name in V_SCHEDULES:
        most = layers + EMPTY_ENDS * columns.empty_ends
        return [(2, 0)] if count >= 2 * pp and 2 * pp <= most else []
    return [(1, 0)]


def _groups(columns: Columns, name: str, pp: int, count: int) -> list[int]:
    """Micro-batches a group of a looped schedule; looped_bfs has none."""
    if name not in GROUPED_SCHEDULES:
        return [0]
    if columns.derived_group:
        group = interleaved_group_size(pp, count)
        return [group] if pp <= count and count % group == 0 else []
    # torch's interleaved_zb runs groups of pp.
    factors = columns.group_factors if name == "interleaved" else (1,)
    return [pp * factor for factor in factors if _group_fits(count, pp * factor, pp)]


def _group_fits(count: int, group: int, pp: int) -> bool:
    """Whether micro-batches can be run in groups of this size: none left over, or at least one a stage."""
    rest = count % group
    return group <= count and (rest == 0 or rest >= pp)
