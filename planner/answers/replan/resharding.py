"""The state that must move when a plan's devices change: bytes that a new rank needs and its device lacks.

For every device that stays, what it needs is compared with what it holds, cell by cell
(``planner.answers.replan.layout``)::

    moved = sum over new ranks of (needed - held before and needed again)

State that no remaining device holds is lost: it comes from a checkpoint.  The time is a lower bound at line rate: the
node that receives most, over all its NICs; inside one node, the device that receives most over the scale-up link.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from planner.answers.replan.layout import Held, StateLayout, overlap, state_layout
from planner.plan.plan import Plan
from profiles.cluster import Pool
from profiles.document import Document


class Resharding(Document):
    """What changing from one plan to the other costs."""

    state_bytes: int = Field(description="one copy of the optimizer's state")
    needed_bytes: int = Field(description="what all new ranks hold together")
    kept_bytes: int = Field(description="part of it that already is where it is needed")
    moved_bytes: int = Field(description="part of it that another device, or a checkpoint, must send")
    lost_bytes: int = Field(description="of one copy: what no remaining device holds; only a checkpoint has it")
    busiest_node_bytes: int = Field(description="what the node that receives most receives")
    seconds: float = Field(description="lower bound at line rate over the slowest link, without reading a checkpoint")
    slowest_link: str = Field(description="the link that bounds it")


def resharding(old: Plan, new: Plan, origins: Sequence[int | None]) -> Resharding:
    """The cost of going from ``old`` to ``new``.

    ``origins``: for each rank of ``new``, the rank that its device had in ``old``; None = the device is new.
    """
    before, after = state_layout(old), state_layout(new)
    pool = new.problem.cluster.pools[0]
    needed = kept = 0.0
    received: dict[int, float] = {}
    most_of_a_device = 0.0
    for rank, origin in enumerate(origins):
        wants = after.held(rank)
        wanted = after.bytes_of(wants)
        has = 0.0 if origin is None else _again(before, before.held(origin), after, wants)
        needed, kept = needed + wanted, kept + has
        node = rank // pool.devices_per_node
        received[node] = received.get(node, 0.0) + wanted - has
        most_of_a_device = max(most_of_a_device, wanted - has)
    busiest = max(received.values(), default=0.0)
    seconds, link = _transfer(pool, len(received), busiest, most_of_a_device)
    return Resharding(
        state_bytes=round(before.total_bytes),
        needed_bytes=round(needed),
        kept_bytes=round(kept),
        moved_bytes=round(needed - kept),
        lost_bytes=round(_lost(before, {origin for origin in origins if origin is not None})),
        busiest_node_bytes=round(busiest),
        seconds=seconds,
        slowest_link=link,
    )


def _again(before: StateLayout, had: Held, after: StateLayout, wants: Held) -> float:
    """Bytes that a device held and needs again."""
    dense, experts = overlap(had.dense, wants.dense), overlap(had.experts, wants.experts)
    common = before.stages[had.stage] & after.stages[wants.stage]
    return sum(after.pieces[name].dense * dense + after.pieces[name].experts * experts for name in common)


def _lost(layout: StateLayout, remaining: set[int]) -> float:
    """Bytes of one copy that no remaining rank holds: its cells are counted once each."""
    everywhere = _cells(layout, range(layout.strategy.world_size))
    left = _cells(layout, remaining)
    return sum(size for cell, size in everywhere.items() if cell not in left)


def _cells(layout: StateLayout, ranks: Sequence[int] | range | set[int]) -> dict[tuple[object, ...], float]:
    """The distinct cells that some ranks hold, each with its bytes."""
    found: dict[tuple[object, ...], float] = {}
    dense = [sum(layout.pieces[name].dense for name in names) for names in layout.stages]
    experts = [sum(layout.pieces[name].experts for name in names) for names in layout.stages]
    for rank in ranks:
        held = layout.held(rank)
        found["dense", held.stage, held.dense] = dense[held.stage] * overlap(held.dense, held.dense)
        found["experts", held.stage, held.experts] = experts[held.stage] * overlap(held.experts, held.experts)
    return found


def _transfer(pool: Pool, nodes: int, busiest_node: float, busiest_device: float) -> tuple[float, str]:
    nics = pool.nics_per_node * pool.nic_bandwidth_bytes_per_s
    if nodes > 1 and nics > 0:
        return busiest_node / nics, f"{pool.nics_per_node} NICs of a node"
    return busiest_device / pool.scale_up.bandwidth_bytes_per_s, pool.scale_up.name or pool.scale_up.kind
