"""The links that flows between devices cross, for many flows at once.

Inside a scale-up domain: through its switch, over the link of the pair (mesh), or along the axes of the torus in order,
the shorter way round.  Inside a node whose domains are smaller: through the host.  Beyond: up to the innermost tier
that joins both nodes, and down.  On rails a message leaves its node by the NIC of the rail that its receiver sits on,
which it reaches over the scale-up network (NCCL's PXN, which ``NCCL_PXN_DISABLE`` turns off), so it
never crosses from rail to rail above.  Where that NIC is lost, its messages are spread over those that both nodes have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiles.errors import DocumentInvalid
from profiles.fabric.fabric import Fabric, Ints


@dataclass(frozen=True, slots=True)
class Passages:
    """Which flow crosses which directed link: columns of equal length."""

    flow: Ints
    link: Ints


class _Collected:
    def __init__(self) -> None:
        self._flows: list[Ints] = []
        self._links: list[Ints] = []

    def add(self, flow: Ints, edge: Ints, down: NDArray[np.bool_] | bool) -> None:
        """Flows over edges, from the head to the tail where ``down``."""
        self._flows.append(flow)
        self._links.append(2 * edge + down)

    def passages(self) -> Passages:
        """All."""
        if not self._flows:
            empty = np.zeros(0, dtype=np.int64)
            return Passages(empty, empty)
        return Passages(np.concatenate(self._flows), np.concatenate(self._links))


def routes(fabric: Fabric, source: Ints, target: Ints) -> Passages:
    """Every link of every flow; a flow from a device to itself crosses none.

    Raises DocumentInvalid where failures leave no way between two devices.
    """
    found = _Collected()
    flow = np.arange(len(source), dtype=np.int64)
    apart = source != target
    near = apart & (source // fabric.domain == target // fabric.domain)
    node = fabric.node_size
    hosted = apart & ~near & (source // node == target // node)
    far = apart & ~near & ~hosted
    _inside(fabric, found, flow[near], source[near], target[near])
    if hosted.any():
        assert fabric.first_host is not None
        found.add(flow[hosted], fabric.first_host + source[hosted], False)
        found.add(flow[hosted], fabric.first_host + target[hosted], True)
    if far.any():
        _beyond(fabric, found, flow[far], source[far], target[far])
    return found.passages()


def _inside(fabric: Fabric, found: _Collected, flow: Ints, source: Ints, target: Ints) -> None:
    """Inside a scale-up domain."""
    away = source != target
    flow, source, target = flow[away], source[away], target[away]
    if fabric.first_scale_up is not None:
        found.add(flow, fabric.first_scale_up + source, False)
        found.add(flow, fabric.first_scale_up + target, True)
    elif fabric.torus_shape is not None:
        _along_axes(fabric, found, flow, source, target)
    elif fabric.first_link is not None and len(flow):
        size = fabric.domain
        a, b = source % size, target % size
        low, high = np.minimum(a, b), np.maximum(a, b)
        pair = low * size - low * (low + 1) // 2 + high - low - 1
        found.add(flow, fabric.first_link + source // size * (size * (size - 1) // 2) + pair, a > b)


def _along_axes(fabric: Fabric, found: _Collected, flow: Ints, source: Ints, target: Ints) -> None:
    assert fabric.first_link is not None
    assert fabric.torus_shape is not None
    here, first, step = source.copy(), fabric.first_link, 1
    for length in reversed(fabric.torus_shape):
        there = target // step % length
        ring = bool(length > 1 and fabric.capacity_bytes_per_s[first : first + fabric.domain].min() > 0)
        while True:
            place = here // step % length
            moving = np.flatnonzero(place != there)
            if not len(moving):
                break
            forward = (there[moving] - place[moving]) % length
            ahead = forward * 2 <= length if ring else there[moving] > place[moving]
            after = (place[moving] + np.where(ahead, 1, -1)) % length
            beyond = here[moving] + (after - place[moving]) * step
            found.add(flow[moving], first + np.where(ahead, here[moving], beyond), ~ahead)
            here[moving] = beyond
        first, step = first + fabric.num_devices, step * length


def _beyond(fabric: Fabric, found: _Collected, flow: Ints, source: Ints, target: Ints) -> None:
    """Through NICs."""
    sender, receiver = source // fabric.node_size, target // fabric.node_size
    on_rails = fabric.tiers[0].rails > 1
    arrives = fabric.nic_of_device(target)
    leaves = arrives if on_rails else fabric.nic_of_device(source)
    live = fabric.live_nics()
    if not live.all():
        leaves, arrives = _around(live, flow, sender, receiver, leaves, arrives, on_rails=on_rails)
    _to_nic(fabric, found, flow, source, leaves, down=False)
    _to_nic(fabric, found, flow, target, arrives, down=True)
    assert fabric.first_cable is not None
    up, down = sender * fabric.nics + leaves, receiver * fabric.nics + arrives
    found.add(flow, fabric.first_cable + up, False)
    found.add(flow, fabric.first_cable + down, True)
    for tier in fabric.tiers[:-1]:
        ours, theirs = tier.group_of_node[sender], tier.group_of_node[receiver]
        higher = np.flatnonzero(ours != theirs)
        if not len(higher):
            break
        assert tier.first_up is not None
        rail_up, rail_down = (leaves, arrives) if tier.rails > 1 else (leaves * 0, arrives * 0)
        found.add(flow[higher], tier.first_up + (ours * tier.rails + rail_up)[higher], False)
        found.add(flow[higher], tier.first_up + (theirs * tier.rails + rail_down)[higher], True)


def _around(
    live: NDArray[np.bool_], flow: Ints, sender: Ints, receiver: Ints, leaves: Ints, arrives: Ints, *, on_rails: bool
) -> tuple[Ints, Ints]:
    """Other NICs for flows whose own are lost: the flow's number says which, so that many spread evenly."""
    usable = live[sender] & live[receiver] if on_rails else live[sender]
    if not usable.any(axis=1).all() or not live[receiver].any(axis=1).all():
        raise DocumentInvalid(
            "the failure leaves a node without a way out", where="failure", hint="count that node as lost instead"
        )
    leaves = _other(usable, leaves, sender + flow)
    return leaves, leaves if on_rails else _other(live[receiver], arrives, receiver + flow)


def _other(usable: NDArray[np.bool_], wished: Ints, number: Ints) -> Ints:
    place = number % usable.sum(axis=1)
    other = np.argmax(np.cumsum(usable, axis=1) > place[:, None], axis=1)
    return np.where(usable[np.arange(len(wished)), wished], wished, other)


def _to_nic(fabric: Fabric, found: _Collected, flow: Ints, device: Ints, nic: Ints, *, down: bool) -> None:
    """Between a device and a NIC of its node: ``down`` from the NIC to the device."""
    assert fabric.first_slot is not None
    if fabric.first_host is not None:
        found.add(flow, fabric.first_host + device, down)
        found.add(flow, fabric.first_slot + device // fabric.node_size * fabric.nics + nic, down)
        return
    share = fabric.pool.devices_per_node // fabric.nics
    own = fabric.nic_of_device(device)
    # The device beside that NIC which stands there as this one does beside its own.
    beside = device + (nic - own) * share
    if down:
        _inside(fabric, found, flow, beside, device)
    else:
        _inside(fabric, found, flow, device, beside)
    found.add(flow, fabric.first_slot + beside, down)
