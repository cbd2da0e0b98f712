"""Does it matter which node gets which rank?  Not behind one flat switch; everywhere else the plan counts on it."""

from __future__ import annotations

from profiles.cluster import Cluster


def why_order_matters(cluster: Cluster, num_nodes: int) -> str:
    """The reasons in words; empty where every order of the nodes is as good as any other."""
    if num_nodes < 2:
        return ""
    reasons = []
    crossed = [level for level in cluster.fabric if level.num_nodes < num_nodes]
    if crossed:
        inner = crossed[0]
        reasons.append(f"a {inner.name} switch holds {inner.num_nodes} of the {num_nodes} nodes of the job")
    # A level carries traffic of the job only where the job fills more than one switch of the level below.
    reasons += [
        f"the {level.name} level carries {level.oversubscription:g} times less than enters it"
        for position, level in enumerate(cluster.fabric)
        if level.oversubscription > 1 and (position == 0 or cluster.fabric[position - 1].num_nodes < num_nodes)
    ]
    pool = cluster.pools[0]
    if pool.scale_up.domain_size > pool.devices_per_node:
        shape = "torus" if pool.scale_up.kind == "torus" else "scale-up domain"
        nodes = pool.scale_up.domain_size // pool.devices_per_node
        reasons.append(f"a {shape} of {pool.scale_up.domain_size} devices spans {nodes} nodes")
    return "; ".join(reasons)
