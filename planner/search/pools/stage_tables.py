"""The cost of every possible stage: time, once-a-step work and memory of spans on sub-meshes, as tables.

For ``c`` layers with ``f`` micro-batches in flight (1F1B: as many as stages from here to the end, at most all)::

    time    layers + ends on this stage + relief of as few layers as let it fit             (seconds a micro-batch)
    late    exposed gradient reduction and parameter gathering + optimizer                  (seconds a step)
    fits    fixed + states + f saved - f saving(relieved) + replay <= limit at every moment, host memory <= its limit

These are the terms of ``planner.predict.stage_memory`` and ``planner.predict.cost``.  One thing differs from plans on
one pool: a stage's reduction hides under its own backward pass, not under that of a mean stage, because stages are
unequal here. Of the policies of a sub-mesh only those stay that no other one beats in both time and late
(``undominated``). Shape letters: R policies, E positions from the end, Z span classes, K undominated policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.model.spec import ModelSpec
from planner.predict.cost.row_cost import RowCost
from planner.predict.memory.moments import Moment
from planner.predict.stage_memory import stage_memory
from planner.search.chunk_times import HOST_FORWARD_SHARE
from planner.search.pools.sub_mesh import SubMesh
from planner.search.row_context import take
from planner.search.split_terms import SLACK
from planner.strategy.rows import distinct_rows
from solver.arrays import Array, Ints

SHARED_BY_RELIEFS = ("tp", "cp", "ring", "sp", "ep", "etp", "dp", "dp_replicate", "zero", "optimizer_offload")


@dataclass(frozen=True, slots=True)
class SpanClass:
    """Spans that cost the same: their layer kinds in order, and which ends of the model they hold."""

    kinds: tuple[int, ...]
    first: bool
    last: bool


@dataclass(frozen=True, slots=True)
class MeshTable:
    """One sub-mesh: ``time``, ``late`` [K, E, Z] (inf = does not fit), ``policy`` row and ``relieved`` layers."""

    time: Array
    late: Array
    policy: Ints
    relieved: Ints


def span_classes(model: ModelSpec, most_layers: int) -> tuple[tuple[SpanClass, ...], Ints]:
    """Distinct spans of up to ``most_layers`` layers, and the class of each (start, count - 1): [L + 1, C]."""
    kinds = tuple(model.layer_kind_sequence())
    layers, known = len(kinds), {}  # type: ignore[var-annotated]
    table = np.full((layers + 1, most_layers), -1, dtype=np.int64)
    for start in range(layers):
        for count in range(1, min(most_layers, layers - start) + 1):
            here = SpanClass(kinds[start : start + count], start == 0, start + count == layers)
            table[start, count - 1] = known.setdefault(here, len(known))
    return tuple(known), table


def mesh_table(
    mesh: SubMesh, classes: tuple[SpanClass, ...], positions: int, wanted: NDArray[np.bool_] | None = None
) -> MeshTable:
    """Costs of one sub-mesh for every class (those not ``wanted`` stay forbidden) and position from the end: [E]."""
    shape = (len(mesh.rows), positions, len(classes))
    time_s, relieved = np.full(shape, np.inf), np.zeros(shape, dtype=np.int64)
    late_s = np.zeros((shape[0], shape[2]))
    chosen = np.arange(len(classes)) if wanted is None else np.flatnonzero(wanted)
    terms = [_SpanTerms(mesh, classes[index]) for index in chosen.tolist()]
    held: dict[tuple[bool, bool], HeldByPosition] = {}
    for index, term in zip(chosen.tolist(), terms, strict=True):
        ends = term.span.first, term.span.first and term.span.last
        if ends not in held:
            held[ends] = held_by_position(mesh, positions, first=ends[0], alone=ends[1])
        time_s[:, :, index], relieved[:, :, index] = term.time_s(held[ends])
    if terms:
        late_s[:, chosen] = _late_s(mesh, terms)
    return _undominated(mesh, time_s, late_s, relieved)


def plain_times_s(mesh: SubMesh, classes: tuple[SpanClass, ...]) -> Array:
    """The least time of every class where memory does not matter: [Z]."""
    found = np.empty(len(classes))
    alone = np.array([span.first and span.last for span in classes])
    for cost, at in ((mesh.cost, np.flatnonzero(~alone)), (mesh.cost_alone, np.flatnonzero(alone))):
        counts, ends = _contents([classes[index] for index in at.tolist()], cost.layer_dense.shape[1])
        found[at] = _plain_s(cost, counts, ends).min(axis=0)
    return found


def _contents(spans: Sequence[SpanClass], kinds: int) -> tuple[Array, Array]:
    """Layers of each kind, and the ends, of some spans: [n, kinds] and [n, 2]."""
    counts = np.array([np.bincount(span.kinds, minlength=kinds) for span in spans], dtype=float).reshape(-1, kinds)
    return counts, np.array([[span.first, span.last] for span in spans], dtype=float).reshape(-1, 2)


def _plain_s(cost: RowCost, counts: Array, ends: Array) -> Array:
    """Time of some spans without relief on every policy: [R, n]."""
    times: Array = cost.layer_s @ counts.T + np.stack([cost.embedding_s, cost.head_s], axis=1) @ ends.T
    return times + cost.stage_host_s[:, None]


def forward_shares(mesh: SubMesh, classes: tuple[SpanClass, ...]) -> Array:
    """The largest part of a stage's time that is its forward, over the policies, for every class: [Z]."""
    found = np.empty(len(classes))
    alone = np.array([span.first and span.last for span in classes])
    for cost, at in ((mesh.cost, np.flatnonzero(~alone)), (mesh.cost_alone, np.flatnonzero(alone))):
        counts, ends = _contents([classes[index] for index in at.tolist()], cost.layer_dense.shape[1])
        whole_s = _plain_s(cost, counts, ends)
        forward_s = cost.layer_forward_s @ counts.T + HOST_FORWARD_SHARE * cost.stage_host_s[:, None]
        forward_s += np.stack([cost.embedding_forward_s, cost.head_forward_s], axis=1) @ ends.T
        found[at] = np.divide(forward_s, whole_s, out=np.ones(whole_s.shape), where=whole_s > 0).max(axis=0)
    return found


@dataclass(frozen=True, slots=True)
class HeldByPosition:
    """What stages hold beside the kept activations of their layers, at every moment of a step: J moments.

    Each [J, R, E], ``layer_states`` [J, R, N]; see ``planner.predict.stage_memory``, whose moments these are.
    """

    fixed: Array
    in_flight: Array
    replay: Array
    layer_states: Array


def held_by_position(mesh: SubMesh, positions: int, *, first: bool, alone: bool) -> HeldByPosition:
    """Of stages at positions 1 .. ``positions`` from the end; the ``first`` one of a pipeline, or the only one.

    A stage that is not the first has at least one before it.
    """
    cost, reliefs = (mesh.cost_alone if alone else mesh.cost), mesh.costs.reliefs

    def moments(num_stages: int) -> tuple[Moment, ...]:
        rows = replace(mesh.rows, pp=np.full(len(mesh.rows), num_stages))
        return stage_memory(rows, cost.under_schedules(rows), reliefs, num_stages).moments

    if alone:
        found = [(moments(1), 0)] * positions
    elif first:
        found = [(moments(max(position, 2)), 0) for position in range(1, positions + 1)]
    else:
        every = moments(positions + 1)
        found = [(every, positions + 1 - position) for position in range(1, positions + 1)]

    def column(name: str) -> Array:
        here = [np.stack([getattr(moment, name)[:, stage] for moment in of]) for of, stage in found]
        return np.stack(here, axis=2)

    states = np.stack([moment.layer_state_bytes for moment in found[0][0]])
    return HeldByPosition(column("fixed_bytes"), column("in_flight"), column("replay_bytes"), states)


class _SpanTerms:
    """The terms of one class of spans on all policies of a sub-mesh."""

    def __init__(self, mesh: SubMesh, span: SpanClass) -> None:
        cost = mesh.cost_alone if span.first and span.last else mesh.cost
        self.mesh, self.cost, self.span = mesh, cost, span
        self.counts = np.bincount(span.kinds, minlength=cost.layer_dense.shape[1]).astype(float)
        self.dense = cost.layer_dense @ self.counts + span.first * cost.embedding_dense + span.last * cost.head_dense
        self.expert = cost.layer_expert @ self.counts + span.last * cost.head_expert
        self.plain_s: Array = (
            cost.layer_s @ self.counts + cost.stage_host_s + span.first * cost.embedding_s + span.last * cost.head_s
        )

    def time_s(self, held: HeldByPosition) -> tuple[Array, Ints]:
        """Seconds of a micro-batch and relieved layers: two [R, E]; infinite where no relief makes it fit."""
        cost, limit_bytes = self.cost, self.mesh.rules.limit_bytes
        tolerance = SLACK * self.mesh.costs.hardware.memory_bytes
        saved = (cost.saved_bytes @ self.counts)[None, :, None]
        states = (held.layer_states @ self.counts)[:, :, None]
        need = held.fixed + states + held.in_flight * saved - limit_bytes
        layers, possible = self._relieved(need, held, tolerance)
        relief_s = self._over_first(cost.relief_s, layers)
        host = self._host_bytes(held.in_flight[0], layers)
        possible &= host <= self.mesh.rules.host_limit_bytes
        return np.where(possible, self.plain_s[:, None] + relief_s, np.inf), layers

    def _relieved(self, need: Array, held: HeldByPosition, tolerance: float) -> tuple[Ints, NDArray[np.bool_]]:
        """Fewest relieved layers with which every moment fits, and whether some do: two [R, E]; ``need``: [J, R, E]."""
        saving = self.cost.saved_bytes - self.cost.relieved_bytes
        if self.mesh.rules.whole:
            return self._every_layer(need, held, tolerance)
        short = (need > tolerance).any(axis=0)
        more = need + held.replay - tolerance
        # What a moment without kept activations lacks, no relief saves.
        flight = np.where(held.in_flight > 0, held.in_flight, 1.0)
        target = np.where(held.in_flight > 0, more / flight, np.where(more > 0, np.inf, -np.inf)).max(axis=0)
        layers = np.where(short, 1, 0)
        total = self._over_first(saving, layers)
        for count in range(1, len(self.span.kinds) + 1):
            behind = short & (total < target) & (layers == count)
            if not behind.any():
                break
            if count == 1 and len(set(self.span.kinds)) == 1:
                # Equal layers: the number is a quotient.
                each = saving[:, self.span.kinds[0]][:, None]
                quotient = np.divide(target, each, out=np.full(target.shape, np.inf), where=each > 0)
                wanted = np.minimum(np.ceil(quotient - SLACK), len(self.span.kinds) + 1.0)
                layers = np.where(behind, wanted, layers).astype(np.int64)
                break
            layers = np.where(behind, count + 1, layers)
            total = self._over_first(saving, np.minimum(layers, len(self.span.kinds)))
        possible = layers <= len(self.span.kinds)
        return np.minimum(layers, len(self.span.kinds)), possible

    def _every_layer(self, need: Array, held: HeldByPosition, tolerance: float) -> tuple[Ints, NDArray[np.bool_]]:
        """All layers of the span where the policy relieves any, and whether that fits: two [R, E]."""
        relieves = self.mesh.rows.relief > 0
        shape = need.shape[1:]
        layers = np.broadcast_to(np.where(relieves, len(self.span.kinds), 0)[:, None], shape).astype(np.int64)
        saved = held.in_flight * self._over_first(self.cost.saved_bytes - self.cost.relieved_bytes, layers)
        left = need - saved + np.where(relieves[:, None], held.replay, 0.0)
        fits: NDArray[np.bool_] = np.all(left <= tolerance, axis=0)
        return layers, fits

    def _over_first(self, by_kind: Array, layers: Ints) -> Array:
        """Sum of a layer column over the first ``layers`` of the span: [R, E]."""
        kinds = self.span.kinds
        if len(set(kinds)) == 1:
            return np.asarray(by_kind[:, kinds[0]][:, None] * layers)
        running = np.concatenate([np.zeros((len(by_kind), 1)), np.cumsum(by_kind[:, list(kinds)], axis=1)], axis=1)
        return np.take_along_axis(running, layers, axis=1)

    def _host_bytes(self, flight: Array, layers: Ints) -> Array:
        """Offloaded optimizer states and activations: [R, E]."""
        cost = self.cost
        held = self.dense * cost.dense_state.host + self.expert * cost.expert_state.host
        offloads = np.array([relief.offload for relief in self.mesh.costs.reliefs])[self.mesh.rows.relief]
        moved = self._over_first(cost.saved_bytes - cost.relieved_bytes, layers)
        return np.asarray(held[:, None] + np.where(offloads[:, None], flight * moved, 0.0))


def _late_s(mesh: SubMesh, terms: Sequence[_SpanTerms]) -> Array:
    """Seconds once a step of every policy and class: [R, Z]."""
    layers, rows = mesh.table.layers, np.arange(len(mesh.rows))
    found = np.empty((len(rows), len(terms)))
    alone = np.array([term.cost is mesh.cost_alone for term in terms])
    for cost, at in ((mesh.cost, np.flatnonzero(~alone)), (mesh.cost_alone, np.flatnonzero(alone))):
        if not len(at):
            continue
        here = [terms[index] for index in at.tolist()]
        counts = np.stack([term.counts for term in here], axis=1)  # [N, Z]
        windows = [
            (column[cost.key] @ counts).T.ravel() for column in (layers.forward_compute_s, layers.backward_compute_s)
        ]
        repeated = replace(
            take(cost, np.tile(rows, len(here))), forward_window_s=windows[0], backward_window_s=windows[1]
        )
        dense, expert = (np.concatenate([getattr(term, name) for term in here]) for name in ("dense", "expert"))
        parts = mesh.costs.tail_parts_s(repeated, dense, expert)
        found[:, at] = (parts[0] + parts[1]).reshape(len(here), len(rows)).T
    return found


def _undominated(mesh: SubMesh, time_s: Array, late_s: Array, relieved: Ints) -> MeshTable:
    """The fastest relief of every sharding, then the shardings that are not beaten in both time and late."""
    _, group = distinct_rows([getattr(mesh.rows, name) for name in SHARED_BY_RELIEFS] + [mesh.rows.micro_batch_size])
    best_s = np.full((int(group.max()) + 1, *time_s.shape[1:]), np.inf)
    row = np.zeros(best_s.shape, dtype=np.int64)
    for index, of in enumerate(group.tolist()):
        faster = time_s[index] < best_s[of]
        best_s[of] = np.where(faster, time_s[index], best_s[of])
        row[of] = np.where(faster, index, row[of])
    first = np.unique(group, return_index=True)[1]
    by_late = np.argsort(late_s[first], axis=0, kind="stable")  # [Q, Z]
    order = np.broadcast_to(by_late[:, None, :], best_s.shape)
    ordered_s = np.take_along_axis(best_s, order, axis=0)
    before_s = np.concatenate([np.full((1, *best_s.shape[1:]), np.inf), np.minimum.accumulate(ordered_s, axis=0)[:-1]])
    keep = ordered_s < before_s
    place = np.cumsum(keep, axis=0) - 1
    most = max(int(place.max()) + 1, 1)
    out_s, out_late = np.full((most, *best_s.shape[1:]), np.inf), np.zeros((most, *best_s.shape[1:]))
    policy, layers = (np.zeros(out_s.shape, dtype=np.int64) for _ in range(2))
    at, position, span = np.nonzero(keep)
    to = place[at, position, span]
    chosen = row[order[at, position, span], position, span]
    out_s[to, position, span] = ordered_s[at, position, span]
    out_late[to, position, span] = late_s[chosen, span]
    policy[to, position, span] = chosen
    layers[to, position, span] = relieved[chosen, position, span]
    return MeshTable(out_s, out_late, policy, layers)
