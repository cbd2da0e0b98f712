"""The mesh: the place of every rank, the members of its groups, and the network that each group crosses.

Two grids over the same ranks, innermost axis first::

    dense    tp, cp, dp_shard, dp_replicate, pp            (axis order tp-cp-ep-dp-pp)
             tp, cp, pp, dp_shard, dp_replicate            (axis order tp-cp-ep-pp-dp)
    expert   etp, ep, edp_shard, edp_replicate, pp         (pp moves in the same way)

The expert grid ignores tp: expert-parallel groups are consecutive global ranks inside a pipeline block.  All answers
but ``groups`` are closed forms and cost the same for 8 ranks as for 100,000.

Sources of the orders: Megatron-LM parallel_state.py:867-905 with initialize.py:388 (``--use-tp-pp-dp-mapping`` for
the second one), torchtitan parallel_dims.py (mesh [pp, dp_replicate, dp_shard, cp, tp], sparse mesh
[pp, dp_replicate, efsdp, ep]), DeepSpeed pipe/topology.py:232-248 ([pipe, data, model]).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.errors import DocumentInvalid
from planner.strategy.grid import GroupPattern, RankGrid
from planner.strategy.strategy import Strategy
from profiles.cluster import Cluster, Pool
from profiles.levels import NetworkLevel, network_levels

Axis = Literal[
    "tp", "cp", "dp_shard", "dp_replicate", "pp", "dp", "dp_cp", "dp_shard_cp", "tp_cp", "etp", "ep", "edp_shard",
    "edp_replicate", "edp", "etp_ep",
]  # fmt: skip

_DENSE_AXES: dict[str, tuple[str, ...]] = {
    "dp": ("dp_shard", "dp_replicate"),
    "dp_cp": ("cp", "dp_shard", "dp_replicate"),
    "dp_shard_cp": ("cp", "dp_shard"),
    "tp_cp": ("tp", "cp"),
}
_EXPERT_AXES: dict[str, tuple[str, ...]] = {
    "etp": ("etp",),
    "ep": ("ep",),
    "edp_shard": ("edp_shard",),
    "edp_replicate": ("edp_replicate",),
    "edp": ("edp_shard", "edp_replicate"),
    "etp_ep": ("etp", "ep"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank runs: node of the cluster, and device within that node (local rank)."""

    node: int
    device: int


@dataclass(frozen=True, slots=True)
class Mesh:
    """Ranks of a strategy, placed in order on the devices of a cluster."""

    strategy: Strategy
    pool: Pool
    dense: RankGrid
    expert: RankGrid
    levels: tuple[NetworkLevel, ...]

    @property
    def world_size(self) -> int:
        """Ranks used; the cluster may have more devices."""
        return self.dense.world_size

    def place(self, rank: int) -> Place:
        """Node and local device of a rank.  Raises DocumentInvalid outside 0 .. world_size - 1."""
        if not 0 <= rank < self.world_size:
            raise DocumentInvalid(
                f"there is no rank {rank}", where="rank", hint=f"ranks run from 0 to {self.world_size - 1}"
            )
        return Place(*divmod(rank, self.pool.devices_per_node))

    def coordinates(self, rank: int) -> dict[str, int]:
        """Coordinates of a rank on both grids (pp is the same on both)."""
        return {**self.expert.coordinates(rank), **self.dense.coordinates(rank)}

    def pattern(self, axis: Axis) -> GroupPattern:
        """Shape of the groups of an axis: factors of (size, stride).

        Single axes are regular.  Joint axes that pp separates (dp_cp in the order tp-cp-ep-pp-dp) have gaps.
        """
        return self._grid(axis).pattern(_members(axis))

    def groups(self, axis: Axis) -> list[tuple[int, ...]]:
        """All groups of an axis as rank tuples, in ascending order.  Costs time and memory of the whole world."""
        return sorted(tuple(row) for row in self._grid(axis).groups(_members(axis)).tolist())

    def level_index(self, axis: Axis) -> int | None:
        """Index into ``levels`` of the innermost tier that holds every group of the axis; None for groups of one."""
        pattern = self.pattern(axis)
        if pattern.size == 1:
            return None
        for index, level in enumerate(self.levels):
            if pattern.stays_within(level.devices_per_group, self.world_size):
                return index
        return len(self.levels) - 1

    def level(self, axis: Axis) -> NetworkLevel | None:
        """The slowest network tier that a group of the axis crosses; None for groups of one."""
        index = self.level_index(axis)
        return None if index is None else self.levels[index]

    def members_per_domain(self, axis: Axis) -> int:
        """Members of one group inside one scale-up domain (or one node, where there is no domain)."""
        return self.pattern(axis).members_within(self._domain())

    def groups_per_nic(self, axis: Axis) -> float:
        """Sibling groups of the axis that share one NIC when all of them communicate; 0 if the axis needs no NIC.

        A node with d devices and n NICs hosts d / m groups that leave it (m members of each inside the node), so
        ``d / (m n)``: 1 = each group has its own rail, 2 = two share a NIC, 1/8 = one group drives eight NICs.
        """
        level = self.level(axis)
        if level is None or level.kind not in ("nic", "fabric"):
            return 0.0
        devices = min(self.pool.devices_per_node, self.world_size)
        return devices / (self.pattern(axis).members_within(devices) * self.pool.nics_per_node)

    def _domain(self) -> int:
        first = self.levels[0] if self.levels else None
        if first is not None and first.name == "scale_up":
            return first.devices_per_group
        return self.pool.devices_per_node

    def _grid(self, axis: Axis) -> RankGrid:
        return self.expert if axis in _EXPERT_AXES else self.dense


def build_mesh(strategy: Strategy, cluster: Cluster) -> Mesh:
    """Place a strategy on a cluster: rank r is device r, nodes in the order of the cluster.

    Raises DocumentInvalid if the strategy needs more devices than there are, its expert degrees do not divide the
    ranks of a stage, or the cluster mixes device types.
    """
    pool = _only_pool(cluster)
    if strategy.world_size > cluster.num_devices:
        raise DocumentInvalid(
            f"the strategy needs {strategy.world_size} devices; {cluster.name} has {cluster.num_devices}",
            where="--strategy",
            hint="lower a degree, or give more --devices",
        )
    return Mesh(strategy, pool, dense_grid(strategy), expert_grid(strategy), network_levels(pool, cluster.fabric))


def dense_grid(strategy: Strategy) -> RankGrid:
    """Grid of everything but the experts."""
    inner = (("tp", strategy.tp), ("cp", strategy.cp))
    data = (("dp_shard", strategy.dp_shard), ("dp_replicate", strategy.dp_replicate))
    return _grid_of(inner, data, strategy)


def expert_grid(strategy: Strategy) -> RankGrid:
    """Grid of the experts.  Raises DocumentInvalid if etp * ep does not divide the ranks of a stage.

    HSDP replicates the experts as often as the rest (``edp_replicate = dp_replicate``) where that divides edp.
    """
    stage_ranks = strategy.tp * strategy.cp * strategy.dp
    if stage_ranks % (strategy.etp * strategy.ep):
        raise DocumentInvalid(
            f"etp {strategy.etp} x ep {strategy.ep} does not divide the {stage_ranks} ranks of a stage (tp x cp x dp)",
            where="ep",
            hint="choose an ep that divides tp * cp * dp / etp",
        )
    replicate = strategy.dp_replicate if strategy.edp % strategy.dp_replicate == 0 else 1
    inner = (("etp", strategy.etp), ("ep", strategy.ep))
    data = (("edp_shard", strategy.edp // replicate), ("edp_replicate", replicate))
    return _grid_of(inner, data, strategy)


def _grid_of(inner: tuple[tuple[str, int], ...], data: tuple[tuple[str, int], ...], strategy: Strategy) -> RankGrid:
    pipeline = (("pp", strategy.pp),)
    axes = inner + (data + pipeline if strategy.axis_order == "tp-cp-ep-dp-pp" else pipeline + data)
    return RankGrid(tuple(name for name, _ in axes), tuple(size for _, size in axes))


def _members(axis: Axis) -> tuple[str, ...]:
    return _EXPERT_AXES.get(axis) or _DENSE_AXES.get(axis) or (axis,)


def _only_pool(cluster: Cluster) -> Pool:
    if len(cluster.pools) != 1:
        raise DocumentInvalid(
            f"cluster {cluster.name} has {len(cluster.pools)} pools; ranks are placed on one pool of equal devices",
            where=f"{cluster.name}#/pools",
            hint="plan each pool by itself: keep one entry of /pools",
        )
    return cluster.pools[0]
