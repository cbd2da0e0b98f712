"""The nodes of a fleet by name: which may be given, in which block each lies, and who holds which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.answers.fleet.question import FleetJob, FleetPool, FleetQuestion
from planner.errors import DocumentInvalid
from profiles.cluster import Cluster
from profiles.importing.hostlist import expand_hostlist

MOST_NODES = 100_000


@dataclass(frozen=True, slots=True)
class PoolNodes:
    """A pool's nodes that jobs may have, block by block, in the fabric's order."""

    name: str
    cluster: Cluster
    block_names: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]
    block_of: Mapping[str, int]
    price_per_device_hour: float | None

    @property
    def devices_per_node(self) -> int:
        """Devices of a node."""
        return self.cluster.pools[0].devices_per_node

    @property
    def num_nodes(self) -> int:
        """Nodes that jobs may have."""
        return len(self.block_of)


@dataclass(frozen=True, slots=True)
class Holding:
    """What a job holds: nodes that may still be given, and whether that is all of what it held."""

    pool: int
    nodes: tuple[str, ...]
    whole: bool
    plan: str | None


def fleet_nodes(question: FleetQuestion, clusters: Sequence[Cluster]) -> tuple[PoolNodes, ...]:
    """The pools.  Raises DocumentInvalid for names that are said twice or lie nowhere."""
    lost = set(_expanded(question.lost_nodes, "/lost_nodes"))
    _once([pool.name for pool in question.pools], "/pools", "pool")
    every, known = Counter[str](), set[str]()
    found = []
    for at, (pool, cluster) in enumerate(zip(question.pools, clusters, strict=True)):
        names = _expanded(pool.nodes, f"/pools/{at}/nodes")
        every.update(names)
        known |= set(names)
        found.append(_pool(pool, cluster, names, lost, f"/pools/{at}"))
    twice = [name for name, count in every.items() if count > 1]
    if twice:
        raise DocumentInvalid(
            f"node {twice[0]} is named twice", where="/pools", hint="name each node in one pool, once"
        )
    _known(lost, known, "/lost_nodes", "of any pool")
    return tuple(found)


def holdings(question: FleetQuestion, pools: Sequence[PoolNodes]) -> tuple[Holding | None, ...]:
    """What each job holds: what it says, else what the former answer gave it.

    Raises DocumentInvalid for nodes of no pool, and for a node that two jobs hold.
    """
    places = {pool.name: at for at, pool in enumerate(pools)}
    former = {job.name: job for job in question.former.jobs} if question.former else {}
    owner, found = dict[str, str](), list[Holding | None]()
    for at, job in enumerate(question.jobs):
        where = f"/jobs/{at}/current"
        before = former.get(job.name)
        if job.current is not None:
            pool, names, plan = job.current.pool, _expanded(job.current.nodes, f"{where}/nodes"), job.current.plan
        elif before is not None and before.pool is not None:
            pool, names, plan, where = before.pool, list(before.nodes), before.plan_id, "/former"
        else:
            found.append(None)
            continue
        if pool not in places:
            raise DocumentInvalid(
                f"job {job.name}: no pool is called {pool}", where=f"{where}/pool", hint=f"one of {', '.join(places)}"
            )
        if where != "/former":
            everywhere = set(_expanded(question.pools[places[pool]].nodes, "/pools"))
            _known(names, everywhere, f"{where}/nodes", f"of pool {pool}", job)
        for name in names:
            if name in owner:
                raise DocumentInvalid(
                    f"job {job.name}: node {name} is held by job {owner[name]}", where=f"{where}/nodes"
                )
            owner[name] = job.name
        usable = tuple(name for name in names if name in pools[places[pool]].block_of)
        found.append(Holding(places[pool], usable, len(usable) == len(names), plan))
    return tuple(found)


def named(
    pools: Sequence[PoolNodes], placed: Sequence[tuple[int, Mapping[int, int]] | None], held: Sequence[Holding | None]
) -> list[tuple[str, ...]]:
    """The nodes of each job, who has so many in each block of a pool: those that it holds first, then others.

    Nodes that another job holds and keeps are not given; so names are taken in two rounds.
    """
    taken, own = set[str](), list[dict[int, list[str]]]()
    for where, holding in zip(placed, held, strict=True):
        kept = dict[int, list[str]]()
        if where is not None:
            pool, blocks = where
            mine = set(holding.nodes) if holding is not None and holding.pool == pool else set()
            for block, nodes in blocks.items():
                kept[block] = [name for name in pools[pool].blocks[block] if name in mine][:nodes]
                taken.update(kept[block])
        own.append(kept)
    found = []
    for where, kept in zip(placed, own, strict=True):
        names = list[str]()
        if where is not None:
            pool, blocks = where
            for block, nodes in sorted(blocks.items()):
                free = [name for name in pools[pool].blocks[block] if name not in taken]
                more = free[: nodes - len(kept[block])]
                taken.update(more)
                chosen = {*kept[block], *more}
                names += [name for name in pools[pool].blocks[block] if name in chosen]
        found.append(tuple(names))
    return found


def _pool(pool: FleetPool, cluster: Cluster, names: list[str], lost: set[str], where: str) -> PoolNodes:
    if len(cluster.pools) != 1:
        raise DocumentInvalid(
            f"pool {pool.name}: cluster {cluster.name} has {len(cluster.pools)} pools of its own",
            where=f"{where}/cluster",
            hint="name a cluster of one pool, and the others as pools of the fleet",
        )
    busy = _expanded(pool.busy, f"{where}/busy")
    _known(busy, set(names), f"{where}/busy", f"of pool {pool.name}")
    gone = lost | set(busy)
    if pool.blocks is None:
        size = cluster.fabric[0].num_nodes if cluster.fabric else len(names)
        cut = {f"{pool.name}-block-{at // size}": names[at : at + size] for at in range(0, len(names), size)}
    else:
        cut = {name: _expanded(lists, f"{where}/blocks/{name}") for name, lists in pool.blocks.items()}
        listed = [name for nodes in cut.values() for name in nodes]
        _known(listed, set(names), f"{where}/blocks", f"of pool {pool.name}")
        _once(listed, f"{where}/blocks", "node")
        left = set(names) - set(listed)
        if left:
            raise DocumentInvalid(
                f"pool {pool.name}: node {min(left)} lies in no block", where=f"{where}/blocks", hint="name it in one"
            )
    blocks = tuple(tuple(name for name in nodes if name not in gone) for nodes in cut.values())
    block_of = {name: at for at, nodes in enumerate(blocks) for name in nodes}
    price = pool.price_per_device_hour or cluster.price_per_device_hour
    return PoolNodes(pool.name, cluster, tuple(cut), blocks, block_of, price)


def _expanded(lists: Iterable[str], where: str) -> list[str]:
    found = list[str]()
    for text in lists:
        found += expand_hostlist(text, where)
        if len(found) > MOST_NODES:
            raise DocumentInvalid(f"more than {MOST_NODES:,} nodes", where=where)
    return found


def _once(names: Sequence[str], where: str, kind: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DocumentInvalid(f"{kind} {twice[0]} is named twice", where=where, hint="name each once")


def _known(names: Iterable[str], known: set[str], where: str, whose: str, job: FleetJob | None = None) -> None:
    strange = next((name for name in names if name not in known), None)
    if strange is not None:
        told = "" if job is None else f"job {job.name}: "
        raise DocumentInvalid(f"{told}node {strange} is not {whose}", where=where, hint="name nodes as `nodes` does")
