"""What collectives load on each link: groups of devices and an operation in, bytes over every directed link out.

A collective is one entity: its members keep step, so it has one rate, *bytes of the buffer a second* (the buffer of
``planner.predict.collective``: all_gather the output, reduce_scatter the input, all_to_all what one rank sends in all).
Its load on a link is the bytes that cross the link for each byte of the buffer.

``ring``: one phase of the hierarchical ring.  Where blocks of L_below members are joined to blocks of k of them, every
member sends ``(k - 1) / k / L_below`` to the member at its place in the next block.  Over a mesh that goes to all other
members at once, over a torus along each axis that the members lie on, in both directions where the axis is a closed
ring, split as the links allow.  ``node_ring``: the same over nodes in the order of their numbers, whatever switch they
are under: NCCL joins the rings of the nodes of a communicator one node to the next (NVIDIA/nccl@0f900e1bb,
connectRings of src/graph/connect.cc) and asks no switch.  ``all_to_all``: ``1 / g`` from everyone to everyone.
``send_recv``: 1 to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from profiles.fabric.fabric import Fabric, Floats, Ints
from profiles.fabric.routes import routes

Pattern = Literal["ring", "node_ring", "all_to_all", "send_recv"]
MOST_FLOWS_AT_ONCE = 100_000
"""Messages routed together: more need more memory and are no faster."""


@dataclass(frozen=True, slots=True)
class Flows:
    """Messages: of which collective, from and to which device, bytes for each byte of the buffer."""

    collective: Ints
    source: Ints
    target: Ints
    weight: Floats


@dataclass(frozen=True, slots=True)
class Load:
    """Bytes over directed links for each byte of a collective's buffer: columns of equal length."""

    link: Ints
    collective: Ints
    amount: Floats
    num_collectives: int


def strided_groups(world_size: int, factors: Sequence[tuple[int, int]]) -> Ints:
    """[group, member]: all groups of a pattern of (size, stride) factors, innermost first, in ascending order."""
    members = np.zeros(1, dtype=np.int64)
    for size, stride in factors:
        members = (np.arange(size)[:, None] * stride + members).ravel()
    period = factors[-1][0] * factors[-1][1] if factors else 1
    inside = np.arange(period)
    for size, stride in factors:
        inside = inside[inside // stride % size == 0]
    firsts = (np.arange(0, world_size, period)[:, None] + inside).ravel()
    groups = firsts[:, None] + members
    return groups[np.argsort(groups[:, 0])]


def load_of(fabric: Fabric, groups: Ints, pattern: Pattern) -> Load:
    """The load of the groups [group, member], one collective each."""
    members = np.sort(groups, axis=1)
    if pattern in ("ring", "node_ring"):
        return _load(fabric, _ring(fabric, members, _blocks(fabric, tiers=pattern == "ring")), len(groups))
    count, size = members.shape
    if pattern == "send_recv":
        ids = np.repeat(np.arange(count), size - 1)
        flows = Flows(ids, members[:, :-1].ravel(), members[:, 1:].ravel(), np.ones(len(ids)))
        return _load(fabric, flows, count)
    at_once = max(1, MOST_FLOWS_AT_ONCE // (size * size))
    return joined(
        [_load(fabric, _all_pairs(part), len(part)) for part in np.split(members, range(at_once, count, at_once))]
    )


def joined(loads: Sequence[Load]) -> Load:
    """Several collectives' loads as one, numbered on."""
    before = np.cumsum([0, *(each.num_collectives for each in loads)])
    return Load(
        np.concatenate([each.link for each in loads]),
        np.concatenate([each.collective + first for each, first in zip(loads, before, strict=False)]),
        np.concatenate([each.amount for each in loads]).astype(np.float64),
        int(before[-1]),
    )


def _load(fabric: Fabric, flows: Flows, num_collectives: int) -> Load:
    passed = routes(fabric, flows.source, flows.target)
    key, place = np.unique(passed.link * num_collectives + flows.collective[passed.flow], return_inverse=True)
    amount = np.bincount(place, weights=flows.weight[passed.flow], minlength=len(key)).astype(np.float64)
    return Load(key // num_collectives, key % num_collectives, amount, num_collectives)


def _all_pairs(members: Ints) -> Flows:
    count, size = members.shape
    ids = np.repeat(np.arange(count), size * size)
    source = np.repeat(members, size, axis=1).ravel()
    target = np.tile(members, size).ravel()
    return Flows(ids, source, target, np.full(len(ids), 1 / size))


def _blocks(fabric: Fabric, *, tiers: bool) -> list[Ints]:
    """The block of every device, innermost network first; equal neighbours are one.

    Without ``tiers`` of switches, all nodes are one block above them.
    """
    devices = np.arange(fabric.num_devices, dtype=np.int64)
    found = [devices // fabric.domain] if fabric.domain > 1 else []
    if fabric.domain < fabric.node_size:
        found.append(devices // fabric.node_size)
    if not tiers:
        return [*(found or [devices]), devices * 0]
    found.extend(tier.group_of_node[devices // fabric.node_size] for tier in fabric.tiers)
    return found


def _ring(fabric: Fabric, members: Ints, blocks: Sequence[Ints]) -> Flows:
    count, size = members.shape
    ids, device = np.repeat(np.arange(count, dtype=np.int64), size), members.ravel()
    below, parts = device, list[Flows]()
    for index, block in enumerate(blocks):
        above = block[device]
        if index and (
            np.unique(np.stack([ids, above]), axis=1).shape == np.unique(np.stack([ids, below]), axis=1).shape
        ):
            below = above
            continue
        if index == 0 and fabric.first_link is not None:
            parts.append(_on_links(fabric, ids, device, above))
        else:
            parts.append(_next_block(ids, device, below, above))
        below = above
    return _all_of(parts)


def _all_of(parts: Sequence[Flows]) -> Flows:
    """The messages of all parts."""
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return Flows(empty, empty, empty, np.zeros(0))
    columns = zip(*((each.collective, each.source, each.target, each.weight) for each in parts), strict=True)
    return Flows(*(np.concatenate(column) for column in columns))


def _next_block(ids: Ints, device: Ints, below: Ints, above: Ints) -> Flows:
    """From every member to the one at its place in the next block below the same block above."""
    order = np.lexsort((device, below, above, ids))
    ids, device, below, above = (each[order] for each in (ids, device, below, above))
    new_outer = np.r_[True, (ids[1:] != ids[:-1]) | (above[1:] != above[:-1])]
    new_inner = new_outer | np.r_[True, below[1:] != below[:-1]]
    first = np.flatnonzero(new_inner)
    length = np.diff(np.r_[first, len(ids)])
    run = np.cumsum(new_inner) - 1
    outer_of_run = (np.cumsum(new_outer) - 1)[first]
    first_run = np.searchsorted(outer_of_run, np.arange(outer_of_run[-1] + 1))
    runs = np.diff(np.r_[first_run, len(first)])
    in_outer = np.arange(len(first)) - first_run[outer_of_run]
    following = first_run[outer_of_run] + (in_outer + 1) % runs[outer_of_run]
    place = np.arange(len(ids)) - first[run]
    target = device[first[following[run]] + place % length[following[run]]]
    parts = runs[outer_of_run][run]
    weight = (parts - 1) / parts / length[run]
    sends = parts > 1
    return Flows(ids[sends], device[sends], target[sends], weight[sends])


def _on_links(fabric: Fabric, ids: Ints, device: Ints, block: Ints) -> Flows:
    """Inside a mesh or torus: ``(k - 1) / k`` of the buffer over all links that a member has to others."""
    key, own, size = np.unique(ids * (block.max() + 1) + block, return_inverse=True, return_counts=True)
    if fabric.torus_shape is None:
        most, flows = int(size.max()), list[Flows]()
        order = np.argsort(own, kind="stable")
        first = np.searchsorted(own[order], np.arange(len(key)))
        place = np.empty_like(own)
        place[order] = np.arange(len(own)) - first[own[order]]
        for shift in range(1, most):
            sends = shift < size[own]
            other = order[first[own] + (place + shift) % size[own]]
            flows.append(Flows(ids[sends], device[sends], device[other][sends], 1 / size[own][sends]))
        return _all_of(flows)
    return _on_rings(fabric, ids, device, own, size[own])


def _on_rings(fabric: Fabric, ids: Ints, device: Ints, own: Ints, size: Ints) -> Flows:
    assert fabric.torus_shape is not None
    assert fabric.first_link is not None
    axes, speeds, step, link = list[tuple[Ints, Ints, Any]](), list[Floats](), 1, fabric.first_link
    for length in reversed(fabric.torus_shape):
        place = device // step % length
        line = own * fabric.num_devices + device - place * step
        order = np.lexsort((place, line))
        starts = np.r_[True, line[order][1:] != line[order][:-1]]
        first = np.flatnonzero(starts)
        count = np.diff(np.r_[first, len(line)])
        run = np.cumsum(starts) - 1
        at = np.arange(len(line)) - first[run]
        following, before = np.empty_like(order), np.empty_like(order)
        following[order] = order[first[run] + (at + 1) % count[run]]
        before[order] = order[first[run] + (at - 1) % count[run]]
        members = np.empty_like(count[run])
        members[order] = count[run]
        hops = np.where(members > 1, np.abs(device[following] - device) // step, 1)
        nearest = np.minimum(hops, np.abs(device[before] - device) // step) if length > 1 else hops
        nearest = np.maximum(nearest, 1)
        wraps = bool(fabric.capacity_bytes_per_s[link : link + fabric.num_devices].min() > 0)
        closed = wraps & (members * nearest >= length)
        axes.append((following, before, closed))
        speeds.append(np.where(members > 1, np.where(closed, 2.0, 1.0) / nearest, 0.0))
        step, link = step * length, link + fabric.num_devices
    total, flows = np.maximum(np.sum(speeds, axis=0), 1e-300), list[Flows]()
    for (following, before, closed), speed in zip(axes, speeds, strict=True):
        share = (size - 1) / size * speed / total
        sends = speed > 0
        both = sends & closed
        one = np.where(both, share / 2, share)
        flows.append(Flows(ids[sends], device[sends], device[following][sends], one[sends]))
        flows.append(Flows(ids[both], device[both], device[before][both], one[both]))
    return _all_of(flows)
