"""The state that must move when a plan's devices or layout change: who has what each device needs, and how long it is.

For every device that stays, what it needs is compared with what it holds, cell by cell
(``planner.answers.replan.layout``)::

    moved = sum over new ranks of (needed - held before and needed again)

Each missing part is read from a device that holds it: one of the same node where there is one, else the copies of a
cell are taken in turn.  State that no remaining device holds is lost: only a checkpoint has it.  The messages run over
the links of the fabric (``profiles.fabric``), all at once::

    seconds = max over directed links of bytes over the link / capacity of the link

a lower bound, which is reached where the messages are many and small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from planner.answers.replan.layout import FAMILIES, Cells, StateLayout, state_layout
from planner.plan.plan import Plan
from profiles.document import Document
from profiles.errors import DocumentInvalid
from profiles.fabric.build import fabric_of
from profiles.fabric.fabric import Fabric
from profiles.fabric.routes import routes
from solver.arrays import Array, Ints

NEXT = 1e-9
"""Part of a cell below which two boundaries are one."""
MOST_AT_ONCE = 4_000_000
"""Messages times copies that are compared together: more need more memory and are no faster."""
GONE = -1
"""In place of a device: none that stays."""


class StageRead(Document):
    """What the devices of a new stage read of the state of an old one."""

    stage: int = Field(description="new pipeline stage")
    of_stage: int = Field(description="old pipeline stage that held it")
    in_place_bytes: int = Field(description="the device itself has it")
    same_node_bytes: int
    other_nodes_bytes: int
    checkpoint_bytes: int = Field(description="no remaining device has it")


class Resharding(Document):
    """What changing from one plan to the other costs."""

    state_bytes: int = Field(description="one copy of the optimizer's state")
    needed_bytes: int = Field(description="what all new ranks hold together")
    kept_bytes: int = Field(description="part of it that already is where it is needed")
    moved_bytes: int = Field(description="part of it that another device, or a checkpoint, must send")
    lost_bytes: int = Field(description="of one copy: what no remaining device holds; only a checkpoint has it")
    busiest_node_bytes: int = Field(description="what the node that receives most receives")
    fullest_node_bytes: int = Field(default=0, description="what the node that holds most holds")
    seconds: float = Field(
        description="lower bound, from devices that stay, over the links of the fabric; lost state is not in it"
    )
    slowest_link: str = Field(description="the link that bounds it")
    reads: tuple[StageRead, ...] = Field(default=(), description="who reads what from where")


@dataclass(frozen=True, slots=True)
class _Messages:
    """Parts of the state: to which device from which one, bytes; the source may be the device itself, or GONE."""

    target: Ints
    source: Ints
    size: Array


def resharding(old: Plan, new: Plan, origins: Sequence[int | None]) -> Resharding:
    """The cost of going from ``old`` to ``new``.

    ``origins``: for each rank of ``new``, the rank that its device had in ``old``; None = the device is new.
    """
    before, after = state_layout(old), state_layout(new)
    pool = new.problem.cluster.pools[0]
    world = before.strategy.world_size
    device_of = np.full(world, GONE, dtype=np.int64)
    for device, origin in enumerate(origins):
        if origin is not None:
            device_of[origin] = device
    reads, all_messages = list[StageRead](), list[_Messages]()
    for stage, of_stage, messages in _stage_pairs(before, after, device_of, pool.devices_per_node):
        all_messages.append(messages)
        reads.append(_read(stage, of_stage, messages, pool.devices_per_node))
    target, source, size = (
        np.concatenate([getattr(each, name) for each in all_messages]) for name in ("target", "source", "size")
    )
    moves, has_source = source != target, source != GONE
    node = target // pool.devices_per_node
    busiest = np.bincount(node[moves], weights=size[moves]).max(initial=0.0)
    fullest = np.bincount(node, weights=size).max(initial=0.0)
    sent = moves & has_source
    seconds, link = _transfer(new, source[sent], target[sent], size[sent])
    return Resharding(
        state_bytes=round(before.total_bytes),
        needed_bytes=round(size.sum()),
        kept_bytes=round(size[~moves].sum()),
        moved_bytes=round(size.sum()) - round(size[~moves].sum()),
        lost_bytes=round(_lost(before, device_of)),
        busiest_node_bytes=round(float(busiest)),
        fullest_node_bytes=round(float(fullest)),
        seconds=seconds,
        slowest_link=link,
        reads=tuple(reads),
    )


def _stage_pairs(
    before: StateLayout, after: StateLayout, device_of: Ints, per_node: int
) -> Iterator[tuple[int, int, _Messages]]:
    """For each new stage and each old one with pieces of it: every part that the new stage's ranks need."""
    had, wants = before.held(), after.held()
    for stage, names in enumerate(after.stages):
        ranks = np.flatnonzero(wants.stage == stage)
        for of_stage, old_names in enumerate(before.stages):
            common = names & old_names
            if not common:
                continue
            holders = np.flatnonzero(had.stage == of_stage)
            parts = [
                _parts(getattr(wants, family), ranks, getattr(had, family), holders, device_of, per_node)
                for family in FAMILIES
                if after.bytes_of(common, family) > 0
            ]
            sizes = [after.bytes_of(common, family) for family in FAMILIES if after.bytes_of(common, family) > 0]
            yield (
                stage,
                of_stage,
                _Messages(
                    np.concatenate([part.target for part in parts]),
                    np.concatenate([part.source for part in parts]),
                    np.concatenate([part.size * size for part, size in zip(parts, sizes, strict=True)]),
                ),
            )


def _parts(wants: Cells, ranks: Ints, had: Cells, holders: Ints, device_of: Ints, per_node: int) -> _Messages:
    """The overlaps of each rank's cell with the old cells, each with the device that it is read from; in areas."""
    rank, row, tall = _overlaps(ranks, wants.row[ranks], wants.rows, had.rows)
    back = np.searchsorted(ranks, rank)
    inner, column, wide = _overlaps(np.arange(len(rank)), wants.column[ranks][back], wants.columns, had.columns)
    target, cell = rank[inner], row[inner] * had.columns + column
    source = _nearest(target, cell, _copies(had, holders, device_of), per_node)
    return _Messages(target, source, tall[inner] * wide)


def _overlaps(owner: Ints, place: Ints, count: int, old_count: int) -> tuple[Ints, Ints, Array]:
    """(owner, old part, length): the old parts 1/old_count that each part ``place`` of 1/count overlaps."""
    low, high = place / count, (place + 1) / count
    first = np.floor(low * old_count + NEXT).astype(np.int64)
    last = np.ceil(high * old_count - NEXT).astype(np.int64) - 1
    number = last - first + 1
    which = np.repeat(np.arange(len(owner)), number)
    part = first[which] + np.arange(len(which)) - np.repeat(np.cumsum(number) - number, number)
    length = np.minimum(high[which], (part + 1) / old_count) - np.maximum(low[which], part / old_count)
    return owner[which], part, length


def _copies(had: Cells, holders: Ints, device_of: Ints) -> Ints:
    """[cell, copy]: the devices that hold each old cell today; GONE where a copy has no device any more."""
    cell, device = had.row[holders] * had.columns + had.column[holders], device_of[holders]
    order = np.argsort(cell, kind="stable")
    number = np.bincount(cell, minlength=had.rows * had.columns)
    found = np.full((len(number), int(number.max())), GONE, dtype=np.int64)
    copy = np.arange(len(cell)) - np.repeat(np.cumsum(number) - number, number)
    found[cell[order], copy] = device[order]
    return found


def _nearest(target: Ints, cell: Ints, copies: Ints, per_node: int) -> Ints:
    """Of each message the copy that is read: the device's own, else one in its node, else all in turn."""
    count, found = copies.shape[1], np.empty_like(target)
    step = max(1, MOST_AT_ONCE // count)
    for first in range(0, len(target), step):
        here = slice(first, first + step)
        to, offered = target[here, None], copies[cell[here]]
        cost = np.where(offered // per_node == to // per_node, 1.0, 2.0) + (np.arange(count) - to) % count / count
        cost = np.where(offered == to, 0.0, np.where(offered == GONE, np.inf, cost))
        found[here] = np.take_along_axis(offered, cost.argmin(axis=1)[:, None], axis=1)[:, 0]
    return found


def _read(stage: int, of_stage: int, messages: _Messages, per_node: int) -> StageRead:
    target, source, size = messages.target, messages.source, messages.size
    own, gone = source == target, source == GONE
    near = ~own & ~gone & (source // per_node == target // per_node)
    return StageRead(
        stage=stage,
        of_stage=of_stage,
        in_place_bytes=round(size[own].sum()),
        same_node_bytes=round(size[near].sum()),
        other_nodes_bytes=round(size[~own & ~near & ~gone].sum()),
        checkpoint_bytes=round(size[gone].sum()),
    )


def _lost(layout: StateLayout, device_of: Ints) -> float:
    """Bytes of one copy that no remaining rank holds: its cells are counted once each."""
    held, lost = layout.held(), 0.0
    for stage in range(len(layout.stages)):
        holders = np.flatnonzero(held.stage == stage)
        for family in FAMILIES:
            cells: Cells = getattr(held, family)
            gone = (_copies(cells, holders, device_of) == GONE).all(axis=1).sum()
            lost += layout.stage_bytes(stage, family) * float(gone) * cells.area
    return lost


def _transfer(new: Plan, source: Ints, target: Ints, size: Array) -> tuple[float, str]:
    """Seconds of the link with the most bytes for its capacity, and its name."""
    if not len(source):
        return 0.0, "none"
    # A part of a node shares no link with others: its cluster is the whole that is in use.
    fabric = fabric_of(new.problem.cluster)
    try:
        passed = routes(fabric, source, target)
    except DocumentInvalid:
        return float("inf"), "no way"
    carried = np.bincount(passed.link, weights=size[passed.flow], minlength=2 * len(fabric.tail))
    capacity = np.repeat(fabric.capacity_bytes_per_s, 2)
    used = carried > 0
    seconds = np.zeros_like(carried)
    seconds[used] = carried[used] / capacity[used]
    worst = int(seconds.argmax())
    return float(seconds[worst]), _link_name(fabric, worst)


def _link_name(fabric: Fabric, link: int) -> str:
    edge, down = divmod(link, 2)
    ends = [fabric.kinds[int(fabric.kind[end])] for end in (fabric.tail[edge], fabric.head[edge])]
    return " to ".join(ends[::-1] if down else ends)
