"""The time of a micro-batch from one stage to the next, when the two are unequal.

All devices of a stage send and receive at once, each its part of the hidden states: ``b s h 2 bytes / devices``.  The
slower side sets the pace: each side's time is that of a point-to-point transfer over the outermost network of its own
pool (``planner.predict.cost.hardware``).  Inside a pool of one scale-up domain that is the domain itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.predict.cost.hardware import Hardware
from planner.search.pools.sub_mesh import SubMesh
from solver.arrays import Array


def hop_table_s(meshes: Sequence[SubMesh]) -> Array:
    """Seconds of one hop between stages on any two sub-meshes: [O, O]."""
    alone = np.array([_side_s(mesh) for mesh in meshes])
    slower: Array = np.maximum(alone[:, None], alone[None, :])
    return slower


def _side_s(mesh: SubMesh) -> float:
    """Seconds in which a sub-mesh can send or receive one micro-batch."""
    hardware: Hardware = mesh.costs.hardware
    if not hardware.levels:
        return 0.0
    entry_bytes = np.array([float(mesh.table.entry_bytes[mesh.cost.key].min())])
    beyond = hardware.levels[-2].devices_per_group if len(hardware.levels) > 1 else 1
    distance = np.array([float(max(mesh.devices, beyond))])
    return float(hardware.collective_s("send_recv", entry_bytes, np.array([2.0]), distance)[0])
