"""The fabric under a plan: its bisection, what each axis gets alone and beside the others, what a failure costs."""

from __future__ import annotations

from pydantic import Field

from planner.plan.plan import Plan
from planner.strategy.mesh import Axis, build_mesh
from profiles.cluster import Cluster
from profiles.document import Document
from profiles.errors import DocumentInvalid
from profiles.fabric.build import fabric_of
from profiles.fabric.cuts import bisection
from profiles.fabric.fabric import Fabric, Ints
from profiles.fabric.failures import failing_kinds, without, without_cable
from profiles.fabric.shares import fair_rates
from profiles.fabric.traffic import Load, Pattern, joined, load_of, strided_groups

_PATTERNS: dict[Axis, Pattern] = {
    "tp": "ring",
    "cp": "ring",
    "dp_cp": "ring",
    "pp": "send_recv",
    "ep": "all_to_all",
    "edp": "ring",
}
"""How the groups of an axis send."""


class FabricPart(Document):
    """Equal parts of the fabric."""

    kind: str
    count: int
    switches: int = Field(description="physical ones: NICs or switches side by side")


class FabricAxis(Document):
    """What the groups of an axis get: buffer bytes a second of the slowest group, all of the axis at once."""

    axis: str
    pattern: str
    group_size: int
    links: tuple[str, ...] = Field(description="kinds of the vertices that its links join")
    alone_bytes_per_s: float
    together_bytes_per_s: float = Field(description="while all axes send: max-min fair")
    slowdown: float
    with_lost: dict[str, float] = Field(description="rate with one part lost over that without; 0 = cut off")


class FabricLoss(Document):
    """What remains of the bisection with one part lost."""

    lost: str
    bisection_bytes_per_s: float
    remains: float


class FabricView(Document):
    """The fabric as a graph, and what is asked of it."""

    cluster: str
    num_devices: int
    parts: tuple[FabricPart, ...]
    rails: int = Field(description="leaves of a group that are not joined there; 1 = no rails")
    bisection_bytes_per_s: float
    bisection_cables: float
    bisection_between: tuple[str, ...]
    losses: tuple[FabricLoss, ...]
    axes: tuple[FabricAxis, ...] = ()


def fabric_view(cluster: Cluster) -> FabricView:
    """The fabric of a cluster.  Raises DocumentInvalid for one device, and for several pools."""
    fabric = fabric_of(cluster)
    return _view(cluster, fabric, _broken(fabric))


def plan_fabric_view(plan: Plan) -> FabricView:
    """The fabric under a plan with its axes.  Experts send while data-parallel groups do, as overlap lets them."""
    cluster, mesh = plan.problem.cluster, build_mesh(plan.chosen(), plan.problem.cluster)
    fabric = fabric_of(cluster)
    broken = _broken(fabric)
    members: dict[Axis, Ints] = {}
    loads: dict[Axis, Load] = {}
    for axis, pattern in _PATTERNS.items():
        factors = mesh.pattern(axis).factors
        if factors and (plan.problem.model.has_experts or axis not in ("ep", "edp")):
            members[axis] = strided_groups(mesh.world_size, factors)
            loads[axis] = load_of(fabric, members[axis], pattern)
    together = fair_rates(fabric, joined(list(loads.values()))) if loads else None
    found, first = list[FabricAxis](), 0
    for axis, load in loads.items():
        assert together is not None
        alone = float(fair_rates(fabric, load).min())
        beside = float(together[first : first + load.num_collectives].min())
        first += load.num_collectives
        edges = set((load.link // 2).tolist())
        kinds = {
            f"{fabric.kinds[int(fabric.kind[fabric.tail[edge]])]}-{fabric.kinds[int(fabric.kind[fabric.head[edge]])]}"
            for edge in edges
        }
        lost = {}
        for name, rest in broken:
            try:
                lost[name] = float(fair_rates(rest, load_of(rest, members[axis], _PATTERNS[axis])).min()) / alone
            except DocumentInvalid:
                lost[name] = 0.0
        found.append(
            FabricAxis(
                axis=axis,
                pattern=_PATTERNS[axis],
                group_size=mesh.pattern(axis).size,
                links=tuple(sorted(kinds)),
                alone_bytes_per_s=alone,
                together_bytes_per_s=beside,
                slowdown=alone / beside,
                with_lost=lost,
            )
        )
    return _view(cluster, fabric, broken).model_copy(update={"axes": tuple(found)})


def _broken(fabric: Fabric) -> list[tuple[str, Fabric]]:
    """The fabric with one part lost, for each kind of part."""
    found = [(f"one {kind}", without(fabric, kind)) for kind in failing_kinds(fabric)]
    cables = [(f"one cable above a {tier.name}", without_cable(fabric, tier.name)) for tier in fabric.tiers[:-1]]
    return [*found, *cables]


def _view(cluster: Cluster, fabric: Fabric, broken: list[tuple[str, Fabric]]) -> FabricView:
    whole = bisection(fabric)
    counts = [int((fabric.kind == index).sum()) for index in range(len(fabric.kinds))]
    losses = []
    for name, rest in broken:
        left = bisection(rest).capacity_bytes_per_s
        losses.append(FabricLoss(lost=name, bisection_bytes_per_s=left, remains=left / whole.capacity_bytes_per_s))
    return FabricView(
        cluster=cluster.name,
        num_devices=fabric.num_devices,
        parts=tuple(
            FabricPart(kind=kind, count=count, switches=int(fabric.switches[fabric.kind == index].sum()))
            for index, (kind, count) in enumerate(zip(fabric.kinds, counts, strict=True))
        ),
        rails=fabric.tiers[0].rails if fabric.tiers else 1,
        bisection_bytes_per_s=whole.capacity_bytes_per_s,
        bisection_cables=whole.cables,
        bisection_between=tuple(f"{a}-{b}" for a, b in whole.between),
        losses=tuple(losses),
    )
