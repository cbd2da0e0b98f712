"""The groups of ranks: the rank grid of a strategy and the torch device meshes cut from it.

The grid is (pp, dp_replicate, dp_shard, cp, tp), tp innermost; the axis order ``tp-cp-ep-pp-dp`` swaps dp and pp.
Experts live on a second grid (pp, replicate, shard, ep) over the same ranks, ep innermost.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from planner.strategy.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Place of one rank in the grid."""

    pp: int
    dp_replicate: int
    dp_shard: int
    cp: int
    tp: int

    def dp(self, strategy: Strategy) -> int:
        """Index among the data-parallel ranks, 0 .. dp-1."""
        return self.dp_replicate * strategy.dp_shard + self.dp_shard


@dataclass(frozen=True, slots=True)
class Meshes:
    """Groups of this rank.  ``dense``: (pp, replicate, shard, tp); ``expert``: (pp, replicate, shard, ep).

    In both, ``shard`` is the axis over which FSDP cuts parameters and ``replicate`` the one over which it only sums
    gradients; context-parallel ranks hold the same parameters and so belong to the data axes.
    """

    strategy: Strategy
    here: Coordinates
    dense: DeviceMesh
    expert: DeviceMesh | None
    context: dist.ProcessGroup | None

    def data_mesh(self) -> DeviceMesh:
        """FSDP mesh of the dense parameters: one axis, or two for HSDP."""
        return _fsdp_axes(self.dense)

    def expert_data_mesh(self) -> DeviceMesh:
        """FSDP mesh of the routed experts."""
        return _fsdp_axes(self.dense if self.expert is None else self.expert)


def rank_grid(strategy: Strategy) -> Tensor:
    """Global ranks as an integer tensor [pp, dp_replicate, dp_shard, cp, tp]."""
    ranks = torch.arange(strategy.world_size)
    if strategy.axis_order == "tp-cp-ep-dp-pp":
        return ranks.view(strategy.pp, strategy.dp_replicate, strategy.dp_shard, strategy.cp, strategy.tp)
    outer = ranks.view(strategy.dp_replicate, strategy.dp_shard, strategy.pp, strategy.cp, strategy.tp)
    return outer.permute(2, 0, 1, 3, 4)


def coordinates(strategy: Strategy, rank: int) -> Coordinates:
    """Where is this rank?"""
    place = (rank_grid(strategy) == rank).nonzero()[0].tolist()
    return Coordinates(*place)


def dense_grid(strategy: Strategy) -> Tensor:
    """[pp, replicate, shard, tp]; ZeRO 0 replicates over everything, else FSDP shards over dp_shard * cp."""
    return rank_grid(strategy).reshape(strategy.pp, *_data_axes(strategy, strategy.cp), strategy.tp)


def expert_grid(strategy: Strategy) -> Tensor:
    """[pp, replicate, shard, ep], with replicate * shard = edp."""
    axes = _data_axes(strategy, strategy.cp * strategy.tp, strategy.ep)
    return rank_grid(strategy).reshape(strategy.pp, *axes, strategy.ep)


def build_meshes(strategy: Strategy, device: str) -> Meshes:
    """Create every process group.  All ranks must call it, in the same order of plans."""
    context = None
    if strategy.cp > 1:
        rows = rank_grid(strategy).transpose(3, 4).reshape(-1, strategy.cp).tolist()
        context, _ = dist.new_subgroups_by_enumeration(rows)  # type: ignore[no-untyped-call]
    expert = None
    if strategy.ep > 1 or strategy.tp > 1:
        expert = DeviceMesh(device, expert_grid(strategy), mesh_dim_names=("pp", "replicate", "shard", "ep"))
    return Meshes(
        strategy=strategy,
        here=coordinates(strategy, dist.get_rank()),
        dense=DeviceMesh(device, dense_grid(strategy), mesh_dim_names=("pp", "replicate", "shard", "tp")),
        expert=expert,
        context=context,
    )


def _data_axes(strategy: Strategy, inner: int, ep: int = 1) -> tuple[int, int]:
    if strategy.zero_stage == 0:
        return strategy.dp * inner // ep, 1
    return strategy.dp_replicate, strategy.dp_shard * inner // ep


def _fsdp_axes(mesh: DeviceMesh) -> DeviceMesh:
    return mesh["shard"] if mesh["replicate"].size() == 1 else mesh["replicate", "shard"]
