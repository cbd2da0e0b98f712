"""What a failed cable, NIC or switch costs: the fabric without it, and what its traffic then gets.

Of switches that stand side by side one is lost: what they carried is spread over the others.  A rail leaf that is lost
sends its rail's traffic over the other NICs of its nodes; a leaf without rails cuts its nodes off.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profiles.errors import NotFound
from profiles.fabric.fabric import Fabric


def failing_kinds(fabric: Fabric) -> tuple[str, ...]:
    """Kinds of vertices one of which may fail: NICs and the tiers."""
    return tuple(kind for kind in fabric.kinds if kind not in ("device", "scale_up", "host"))


def without(fabric: Fabric, kind: str) -> Fabric:
    """The fabric with one NIC or switch of a kind lost, the first.  Raises NotFound for a kind that is not there."""
    if kind not in failing_kinds(fabric):
        raise NotFound(
            f"the fabric has no {kind} that could fail", where="kind", hint=", ".join(failing_kinds(fabric)) or "none"
        )
    vertex = int(np.flatnonzero(fabric.kind == fabric.kinds.index(kind))[0])
    beside = max(1.0, float(fabric.switches[vertex]))
    touched = (fabric.tail == vertex) | (fabric.head == vertex)
    capacity = np.where(touched, fabric.capacity_bytes_per_s * (beside - 1) / beside, fabric.capacity_bytes_per_s)
    switches = fabric.switches.copy()
    switches[vertex] = beside - 1
    return replace(fabric, capacity_bytes_per_s=capacity, switches=switches)


def without_cable(fabric: Fabric, tier: str) -> Fabric:
    """The fabric with one cable from the first switch of a tier upwards lost.  Raises NotFound for the outermost."""
    edge = next((each.first_up for each in fabric.tiers if each.name == tier and each.first_up is not None), None)
    if edge is None:
        raise NotFound(f"nothing leads up from {tier}", where="tier", hint="name a tier below the outermost one")
    capacity, cables = fabric.capacity_bytes_per_s.copy(), fabric.cables.copy()
    capacity[edge] *= (cables[edge] - 1) / cables[edge]
    cables[edge] -= 1
    return replace(fabric, capacity_bytes_per_s=capacity, cables=cables)
