"""The weights' way from the trainer to the engines, and the state's way to the host and back.

Measured synchronisations are bound by software, tensor by tensor, not by links: 1 to 8 GB/s where links carry 50 to 450
(verl docs/advance/delta_weight_sync.md and fully_async.md, NeMo-RL docs/guides/checkpoint-engine-refit.md).  So a
device takes weights in at one rate, and no link makes it faster than its own bandwidth.
"""

from __future__ import annotations

from planner.rl.deployment import SyncMethod
from planner.rl.predict.software import fitted_factors
from profiles.cluster import Pool

HOST_LINK_SHARE = 0.8
"""Part of a host link's rate that copies of pinned memory reach (as the offload of training plans)."""
BYTES_PER_S = 6.0e9
"""What a device takes in, before the fitted factor: 70 GiB a rank in 9.3 (nixl) to 14.2 s (nccl), NeMo-RL's guide."""


def sync_s(method: SyncMethod, model_bytes: float, shards: int, pool: Pool) -> float:
    """Seconds until the engines have new weights.

    ``broadcast`` passes every tensor whole through every receiver; ``reshard`` and ``sharded`` only what a device of
    the engines holds, ``model_bytes / shards``.
    """
    node = pool.nic_bandwidth_bytes_per_s * max(1, pool.nics_per_node) / pool.devices_per_node
    inside = pool.scale_up.bandwidth_bytes_per_s
    link = inside if method == "reshard" else (node or inside)
    received = model_bytes if method == "broadcast" else model_bytes / shards
    return received / min(BYTES_PER_S / fitted_factors().way, link)


def switch_s(state_bytes: float, pool: Pool) -> float:
    """The trainer's state of a device to the host before generation, and back after it."""
    return 2.0 * state_bytes / (HOST_LINK_SHARE * pool.host.link_bandwidth_bytes_per_s)
