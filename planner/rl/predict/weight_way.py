"""The weights' way from the trainer to the engines, and the state's way to the host and back.

Measured steps show that this is bound by software, tensor by tensor, not by links: 3 to 8 GB/s where links carry 50 to
450 (verl docs/advance/delta_weight_sync.md and fully_async.md, NeMo-RL docs/guides/checkpoint-engine-refit.md).  So
each way has one rate for what a device receives, fitted to measured rows (``planner.rl.evidence``), and no link makes
it faster than its own bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.rl.deployment import SyncMethod
from profiles.cluster import Pool

HOST_LINK_SHARE = 0.8
"""Part of a host link's rate that copies of pinned memory reach (as the offload of training plans)."""


@dataclass(frozen=True, slots=True)
class WayRates:
    """Bytes a second that one receiving device takes in, and seconds that every synchronisation costs."""

    reshard_bytes_per_s: float
    broadcast_bytes_per_s: float
    sharded_bytes_per_s: float
    fixed_s: float


FITTED = WayRates(reshard_bytes_per_s=6.0e9, broadcast_bytes_per_s=4.5e9, sharded_bytes_per_s=7.0e9, fixed_s=1.0)


def sync_s(method: SyncMethod, model_bytes: float, shards: int, pool: Pool, rates: WayRates = FITTED) -> float:
    """Seconds until the engines have new weights.

    ``broadcast`` passes every tensor whole through every receiver; ``reshard`` and ``sharded`` only what a device of
    the engines holds, ``model_bytes / shards``.
    """
    node = pool.nic_bandwidth_bytes_per_s * max(1, pool.nics_per_node) / pool.devices_per_node
    link = node or pool.scale_up.bandwidth_bytes_per_s
    if method == "broadcast":
        return rates.fixed_s + model_bytes / min(rates.broadcast_bytes_per_s, link)
    held = model_bytes / shards
    if method == "reshard":
        return rates.fixed_s + held / min(rates.reshard_bytes_per_s, pool.scale_up.bandwidth_bytes_per_s)
    return rates.fixed_s + held / min(rates.sharded_bytes_per_s, link)


def switch_s(state_bytes: float, pool: Pool) -> float:
    """The trainer's state of a device to the host before generation, and back after it."""
    return 2.0 * state_bytes / (HOST_LINK_SHARE * pool.host.link_bandwidth_bytes_per_s)
