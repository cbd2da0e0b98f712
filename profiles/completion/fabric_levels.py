"""The levels of the network above the nodes: from the tiers of a topology, else the base's.

Groups of one tier may differ in size: the smallest is taken, so that no traffic is counted as local that may cross; a
tier of one group covers everything. Oversubscription = capacity of the cables below a group over those above, the
worst group's. Tiers inside a scale-up domain say nothing new and are dropped.
"""

from __future__ import annotations

from profiles.cluster import FabricLevel
from profiles.completion.notes import Notes, missing
from profiles.topology import NetworkTier, Topology


def fabric_of_tiers(
    topology: Topology,
    base: tuple[FabricLevel, ...] | None,
    device: str,
    *,
    num_nodes: int,
    nodes_of_domain: int,
    notes: Notes,
) -> tuple[FabricLevel, ...]:
    """Fabric levels, innermost first.  Raises ProfileMissing for an oversubscription that nobody gives."""
    tiers = [tier for tier in topology.tiers if tier.kind != "scale_up"]
    if not tiers:
        if base:
            notes.other("fabric", ", ".join(f"{level.name} {level.num_nodes}" for level in base), "the base")
            return base
        if num_nodes > nodes_of_domain:
            notes.say("fabric: no file shows it; the planner takes one flat network without oversubscription")
        return ()
    levels: list[FabricLevel] = []
    for tier in tiers:
        size = _size(tier, levels[-1].num_nodes if levels else 0, nodes_of_domain, notes)
        if size is None:
            continue
        levels.append(
            FabricLevel(
                name=tier.name,
                num_nodes=size,
                oversubscription=_oversubscription(tier, len(levels), base, device, notes),
                latency_s=_latency(len(levels), base),
            )
        )
        notes.topology(f"fabric.{tier.name}.num_nodes", size, _shapes(tier))
    if levels:
        where = "the base" if base else "the document's default (no file gives it)"
        notes.other("fabric.latency_s", ", ".join(f"{level.latency_s:g} s" for level in levels), where)
    return tuple(levels)


def _shapes(tier: NetworkTier) -> str:
    sizes = sorted({len(group) for group in tier.groups})
    shown = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}; the smallest is safe"
    return f"{len(tier.groups)} groups of {shown}"


def _size(tier: NetworkTier, below: int, nodes_of_domain: int, notes: Notes) -> int | None:
    """Nodes in a group, a multiple of the level below and of a scale-up domain; None if the tier adds nothing."""
    unit = max(below, nodes_of_domain if nodes_of_domain > 1 else 1)
    if below and nodes_of_domain > 1 and below % nodes_of_domain:
        unit = below
    smallest = min(map(len, tier.groups))
    rounded_up, rounded_down = -(-smallest // unit) * unit, smallest // unit * unit
    size = rounded_up if len(tier.groups) == 1 else rounded_down
    if size <= below or (nodes_of_domain > 1 and size < nodes_of_domain):
        notes.say(f"fabric.{tier.name}: its groups are no larger than what lies below; the tier is left out")
        return None
    if nodes_of_domain > 1 and size == nodes_of_domain and len(tier.groups) > 1:
        notes.say(f"fabric.{tier.name}: its groups are the scale-up domains; the tier is left out")
        return None
    if size != smallest and len(tier.groups) > 1:
        notes.say(
            f"fabric.{tier.name}: groups of {smallest} nodes are counted as {size}, whole groups of the level below"
        )
    return size


def _oversubscription(
    tier: NetworkTier, index: int, base: tuple[FabricLevel, ...] | None, device: str, notes: Notes
) -> float:
    name = f"fabric.{tier.name}.oversubscription"
    if len(tier.groups) == 1:
        notes.say(f"{name}: nothing leaves the outermost tier")
        return 1.0
    up_rate, down_rate = tier.link_bandwidth_bytes_per_s, tier.downlink_bandwidth_bytes_per_s
    if tier.uplinks_per_group and tier.downlinks_per_group:
        same = up_rate is None or down_rate is None
        ratios = [
            down * (1.0 if same else down_rate or 1.0) / (up * (1.0 if same else up_rate or 1.0))
            for up, down in zip(tier.uplinks_per_group, tier.downlinks_per_group, strict=True)
            if up
        ]
        if ratios:
            worst = max(1.0, round(max(ratios), 4))
            notes.topology(name, f"{worst:g}", "cables below over cables above, the worst group")
            return worst
    if base:
        level = base[min(index, len(base) - 1)]
        notes.other(name, f"{level.oversubscription:g}", f"the base's {level.name}")
        return level.oversubscription
    raise missing("fabric.oversubscription", device)


def _latency(index: int, base: tuple[FabricLevel, ...] | None) -> float:
    if base:
        return base[min(index, len(base) - 1)].latency_s
    return float(FabricLevel.model_fields["latency_s"].default)
