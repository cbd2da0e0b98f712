"""The communication map of a plan: who talks to whom, over which network, and how crowded it is there.

Ranks are mixed-radix numbers (``planner.strategy.grid``), so the whole map is a few sizes and strides, for 8 ranks as
for 100,000: rank r runs on device ``r % devices_per_node`` of node ``r // devices_per_node``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from planner.backends.asked import physics_of
from planner.plan.communication_bill import Traffic, busiest_stages, communication_bill, most_of_a_rank
from planner.plan.plan import Plan
from planner.predict.cost.payload import TrafficAxis
from planner.strategy.grid import RankGrid
from planner.strategy.mesh import Axis, Mesh, build_mesh
from profiles.document import Document

_SHOWN: tuple[Axis, ...] = ("tp", "cp", "dp_cp", "pp", "etp", "ep", "edp")
"""Axes whose groups communicate in a step."""
_TERM_OF: dict[Axis, str] = {"tp": "tp", "cp": "cp", "dp_cp": "dp", "pp": "pp_send", "ep": "ep"}
"""Term of the step time that an axis causes; the others are part of one of these."""

_SENT_AS: dict[Axis, tuple[TrafficAxis, ...]] = {
    "tp": ("tp",),
    "cp": ("cp",),
    "dp_cp": ("dp_shard", "dp_replicate"),
    "pp": ("pp",),
    "etp": ("etp",),
    "ep": ("ep",),
    "edp": ("edp_shard", "edp_replicate"),
}
"""Data parallel groups send as their two factors."""


class GridAxis(Document):
    """One digit of a rank's number: ``coordinate = rank // stride % size``."""

    name: str
    size: int
    stride: int


class MapLevel(Document):
    """One tier of the network, innermost first; blocks of ``devices_per_group`` consecutive ranks share it."""

    name: str
    kind: str
    devices_per_group: int
    bandwidth_bytes_per_s: float = Field(description="one way, of each device when all of them send")
    latency_s: float


class GroupFactor(Document):
    """Part of the shape of a group: ``size`` members, ``stride`` ranks apart."""

    size: int
    stride: int


class MapAxis(Document):
    """The groups of one axis: shape, the slowest level that they cross, and who else is there."""

    axis: str
    group_size: int
    num_groups: int
    factors: tuple[GroupFactor, ...] = Field(description="innermost first; the group of rank 0, others are shifted")
    level: str | None = Field(description="null = groups of one")
    members_per_domain: int = Field(description="members of one group inside one scale-up domain")
    groups_per_nic: float = Field(description="groups that share one NIC when all of them send; 0 = none is needed")
    seconds: float | None = Field(description="of the step that this axis costs and nothing hides")
    bytes_per_step: float = Field(description="payload of one rank, all operations, of the stage that sends most")
    sentence: str


class MeshView(Document):
    """The map of a plan."""

    schema_version: int = 1
    plan_id: str
    cluster: str
    device: str
    world_size: int
    num_devices: int = Field(description="of the cluster; ranks may be fewer")
    devices_per_node: int
    scale_up_domain: int = Field(description="devices of one scale-up domain; it may span nodes")
    levels: tuple[MapLevel, ...]
    dense: tuple[GridAxis, ...] = Field(description="digits of a rank's number, innermost first")
    expert: tuple[GridAxis, ...] = Field(description="the same ranks as experts see them; empty without experts")
    axes: tuple[MapAxis, ...]
    traffic: tuple[Traffic, ...] = Field(
        description="payload of one rank and step, each of the stage that sends most of it"
    )


def mesh_view(plan: Plan) -> MeshView:
    """The map of a plan.  Raises DocumentInvalid for a cluster of several pools."""
    mesh = build_mesh(plan.chosen(), plan.problem.cluster)
    bill = communication_bill(plan, physics_of(plan))
    pool = mesh.pool
    experts = plan.problem.model.has_experts
    shown = [axis for axis in _SHOWN if experts or axis not in ("etp", "ep", "edp")]
    domain = mesh.levels[0].devices_per_group if mesh.levels and mesh.levels[0].name == "scale_up" else 1
    return MeshView(
        plan_id=plan.plan_id,
        cluster=plan.problem.cluster.name,
        device=pool.device.name,
        world_size=mesh.world_size,
        num_devices=plan.problem.cluster.num_devices,
        devices_per_node=pool.devices_per_node,
        scale_up_domain=domain,
        levels=tuple(
            MapLevel(
                name=level.name,
                kind=level.kind,
                devices_per_group=level.devices_per_group,
                bandwidth_bytes_per_s=level.bandwidth_bytes_per_s,
                latency_s=level.latency_s,
            )
            for level in mesh.levels
        ),
        dense=_digits(mesh.dense),
        expert=_digits(mesh.expert) if experts else (),
        axes=tuple(_axis(plan, mesh, axis, bill) for axis in shown),
        traffic=busiest_stages(bill),
    )


def _digits(grid: RankGrid) -> tuple[GridAxis, ...]:
    return tuple(
        GridAxis(name=name, size=size, stride=grid.stride(name))
        for name, size in zip(grid.names, grid.sizes, strict=True)
    )


def _axis(plan: Plan, mesh: Mesh, axis: Axis, bill: Sequence[Traffic]) -> MapAxis:
    pattern, level = mesh.pattern(axis), mesh.level(axis)
    term = _TERM_OF.get(axis)
    found = MapAxis(
        axis=axis,
        group_size=pattern.size,
        num_groups=mesh.world_size // pattern.size,
        factors=tuple(GroupFactor(size=size, stride=stride) for size, stride in pattern.factors),
        level=None if level is None else level.name,
        members_per_domain=mesh.members_per_domain(axis),
        groups_per_nic=mesh.groups_per_nic(axis),
        seconds=None if term is None else plan.breakdown_s.get(term, 0.0),
        bytes_per_step=most_of_a_rank(bill, _SENT_AS[axis]),
        sentence="",
    )
    return found.model_copy(update={"sentence": _sentence(found)})


def _sentence(axis: MapAxis) -> str:
    if axis.level is None:
        return f"{axis.axis} is 1: nobody to talk to."
    where = (
        f"{axis.num_groups:,} groups of {axis.group_size:,} ranks"
        if axis.num_groups > 1
        else f"one group of all {axis.group_size:,} ranks"
    )
    crowd = ""
    if axis.groups_per_nic > 1:
        crowd = f"; {axis.groups_per_nic:g} of them share each NIC"
    elif 0 < axis.groups_per_nic < 1:
        crowd = f"; each drives {1 / axis.groups_per_nic:g} NICs of a node"
    return f"{axis.axis}: {where}; the slowest level that they cross is {axis.level}{crowd}."
