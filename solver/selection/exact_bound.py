"""Proved lower bounds, in total and for every single value, in integers from any prices and any shares.

Given        prices p_r >= 0 of the rows, shares y[e, c](v): what class c puts on its edge e (``messages`` finds them).
Rounded      P_r = floor(2^q p_r) and Y = round(2^s y): any integers give a valid bound, so rounding costs quality only.
Bound        B = sum_c min_v U_c(v) + sum_e min_(k, l) T_e(k, l) - sum_r P_r slack_r,   in units of 2^-s, where
             U_c(v)    = 2^s unary + (memory at prices P, rounded down) - sum over edges of Y[e, c](v)
             T_e(k, l) = 2^s table + Y[e, a](k) + Y[e, b](l),  forbidden pairs left out
Value        no selection with x_c = v costs less than  B + (U_c(v) - min U_c) + sum_e (min_l T_e(v, l) - min T_e)

Every permitted selection within the slack costs at least B: the Y cancel, and P_r (usage_r - slack_r) <= 0.  The one
product that may exceed 64 bits, price times usage, is formed in floating point and lowered by 2^-51 of itself plus
one unit: two roundings of relative size 2^-53 each cannot exceed that.  Sums over rows and classes are Python's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Array, Ints
from solver.selection.kernel import INT, INTS, NOTHING, kernel
from solver.selection.presolve.classes import NEVER
from solver.selection.reduced import GRAPH, MEMORY, Graph, Memory, Reduced

ROOM_BITS = 57
"""Scaled entries stay below 2^57, so that sums over the edges of a class fit in 64 bits."""


@dataclass(frozen=True)
class ProvenBound:
    """``bound`` <= every feasible cost (with the constant); ``value_bound[u]`` the same where that value is taken.

    The values' bounds are in units of 2^-``shift`` without the constant: at most ``limit(cost)`` may be better.
    """

    bound: int
    value_bound: Ints
    shift: int
    constant: int
    scaled: int

    def excess(self) -> Array:
        """real[U]: what each value costs above the bound at least; infinite where it has no permitted partner."""
        above = self.value_bound - max(-(2**61), min(2**61, self.scaled))
        return np.where(above >= 2**61, np.inf, above * 2.0**-self.shift)

    def improving(self, cost: int) -> NDArray[np.bool_]:
        """bool[U]: the values that a selection cheaper than ``cost`` may still take."""
        limit = (cost - self.constant) << self.shift
        return np.asarray(self.value_bound < min(limit, 2**62))


@kernel(NOTHING(GRAPH, MEMORY, INTS, INTS, INT, INT, INTS))
def add_integer_prices(
    graph: Graph, memory: Memory, unary: Ints, before: Ints, shift: int, price_bits: int, priced: Ints
) -> None:
    """Fill ``priced`` in units of 2^-shift, rounded down; ``before[r]`` is the sum of the first r integer prices."""
    scale = 2.0 ** (shift - price_bits)
    for u in range(unary.size):
        priced[u] = unary[u] << shift
    for s in range(memory.seg_class.size):
        weight = float(before[memory.seg_hi[s]] - before[memory.seg_lo[s]])
        first = graph.start[memory.seg_class[s]]
        if weight == 0.0:
            continue
        for v in range(graph.sizes[memory.seg_class[s]]):
            product = weight * float(memory.seg_usage[memory.seg_start[s] + v]) * scale
            if product > 0.0:
                priced[first + v] += np.int64(np.floor(product - product * 2.0**-51)) - 1


@kernel(NOTHING(GRAPH, INTS, INTS, INTS, INT, INTS, INTS, INTS))
def exact_parts(
    graph: Graph,
    priced: Ints,
    table: Ints,
    shares: Ints,
    shift: int,
    share_start: Ints,
    least: Ints,
    marginal: Ints,
) -> None:
    """``least`` = the minimum of each class, then of each edge; ``marginal`` = what each value costs above those."""
    num, largest = graph.sizes.size, np.int64(1)
    for c in range(num):
        largest = max(largest, graph.sizes[c])
    for u in range(marginal.size):
        marginal[u] = priced[u]
    for e in range(graph.edge_a.size):
        for side in range(2):
            c = graph.edge_b[e] if side == 0 else graph.edge_a[e]
            for v in range(graph.sizes[c]):
                marginal[graph.start[c] + v] -= shares[share_start[2 * e + side] + v]
    for c in range(num):
        lowest = marginal[graph.start[c]]
        for u in range(graph.start[c], graph.start[c + 1]):
            lowest = min(lowest, marginal[u])
        least[c] = lowest
        for u in range(graph.start[c], graph.start[c + 1]):
            marginal[u] -= lowest
    row, column = np.empty(largest, np.int64), np.empty(largest, np.int64)
    for e in range(graph.edge_a.size):
        a, b = graph.edge_a[e], graph.edge_b[e]
        row[: graph.sizes[a]] = 2**62
        column[: graph.sizes[b]] = 2**62
        lowest = np.int64(2**62)
        cell = graph.edge_start[e]
        for k in range(graph.sizes[a]):
            given = shares[share_start[2 * e + 1] + k]
            for m in range(graph.sizes[b]):
                if table[cell] < NEVER:
                    value = (table[cell] << shift) + given + shares[share_start[2 * e] + m]
                    row[k] = min(row[k], value)
                    column[m] = min(column[m], value)
                cell += 1
            lowest = min(lowest, row[k])
        least[num + e] = lowest
        for k in range(graph.sizes[a]):
            u = graph.start[a] + k
            marginal[u] = 2**62 if row[k] == 2**62 else min(2**62, marginal[u] + row[k] - lowest)
        for m in range(graph.sizes[b]):
            u = graph.start[b] + m
            marginal[u] = 2**62 if column[m] == 2**62 else min(2**62, marginal[u] + column[m] - lowest)


@kernel(NOTHING(GRAPH, INTS, INTS, INTS, INT, INTS, INTS))
def cell_costs(
    graph: Graph,
    table: Ints,
    shares: Ints,
    share_start: Ints,
    shift: int,
    least: Ints,
    cells: Ints,
) -> None:
    """T_e(k, l) less its minimum, NEVER where the pair is forbidden."""
    num = graph.sizes.size
    for e in range(graph.edge_a.size):
        cell = graph.edge_start[e]
        for k in range(graph.sizes[graph.edge_a[e]]):
            given = shares[share_start[2 * e + 1] + k]
            for m in range(graph.sizes[graph.edge_b[e]]):
                cells[cell] = NEVER
                if table[cell] < NEVER:
                    cells[cell] = (table[cell] << shift) + given + shares[share_start[2 * e] + m] - least[num + e]
                cell += 1


@dataclass(frozen=True)
class Rounded:
    """Integer prices and shares, and what they prove: ``least`` and ``marginal`` as in ``exact_parts``."""

    shift: int
    price_bits: int
    price: Ints
    priced: Ints
    shares: Ints
    least: Ints
    marginal: Ints
    scaled: int


@dataclass(frozen=True)
class ReducedCosts:
    """Costs above a proven bound, in real numbers: each selection costs ``bound_exact`` plus the sum of its parts."""

    unary: Array
    table: Array
    price: Array
    bound_exact: float
    scaled: int
    shift: int
    constant: int

    def lift(self, above: float) -> int:
        """The integer bound that a bound on the sum of parts gives."""
        return -((-(self.scaled + math.floor(above * 2.0**self.shift))) >> self.shift) + self.constant


def _rounded(reduced: Reduced, price: Array, shares: Array, share_start: Ints) -> Rounded:
    """The sums of the module's docstring."""
    graph, memory = reduced.graph, reduced.memory
    price_bits = 50 - int(np.ceil(np.log2(float(price.sum()) + 1.0)))
    integer_price = np.floor(price * 2.0**price_bits).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(integer_price)]).astype(np.int64)
    permitted = reduced.table[reduced.table < NEVER]
    largest = max(
        float(np.abs(reduced.unary).max(initial=1)),
        float(np.abs(permitted).max(initial=1)),
        float(np.abs(shares).max(initial=1)),
        _largest_price(memory, price),
    )
    shift = max(0, min(20, ROOM_BITS - int(np.ceil(np.log2(largest)))))
    room = 2.0**ROOM_BITS
    rounded = np.rint(np.clip(shares * 2.0**shift, -room, room)).astype(np.int64)
    priced = np.zeros(reduced.unary.size, np.int64)
    add_integer_prices(graph, memory, reduced.unary, before, shift, price_bits, priced)
    least = np.zeros(graph.sizes.size + graph.edge_a.size, np.int64)
    marginal = np.zeros(reduced.unary.size, np.int64)
    exact_parts(graph, priced, reduced.table, rounded, shift, share_start, least, marginal)
    paid = sum(p * s for p, s in zip(integer_price.tolist(), memory.slack.tolist(), strict=True))
    lowered = price_bits - shift
    scaled = sum(least.tolist()) - (-((-paid) >> lowered) if lowered >= 0 else paid << -lowered)
    return Rounded(shift, price_bits, integer_price, priced, rounded, least, marginal, scaled)


@kernel(NOTHING(GRAPH, INTS, INTS, INT, INTS))
def forbid_pairs(graph: Graph, unary: Ints, cells: Ints, limit: int, table: Ints) -> None:
    """Set table entries to NEVER where the pair and its two values already cost ``limit`` above the bound."""
    for e in range(graph.edge_a.size):
        cell = graph.edge_start[e]
        for k in range(graph.sizes[graph.edge_a[e]]):
            given = unary[graph.start[graph.edge_a[e]] + k]
            for m in range(graph.sizes[graph.edge_b[e]]):
                if table[cell] < NEVER and cells[cell] + given + unary[graph.start[graph.edge_b[e]] + m] >= limit:
                    table[cell] = NEVER
                cell += 1


@dataclass(frozen=True)
class Improving:
    """``bound``, and what a selection cheaper than a given cost may contain: values (bool[U]) and pairs (tables)."""

    bound: int
    alive: NDArray[np.bool_]
    table: Ints


def improving(reduced: Reduced, price: Array, shares: Array, share_start: Ints, cost: int) -> Improving:
    """The values left by their bounds, and the tables with every pair forbidden that costs too much."""
    parts = _rounded(reduced, price, shares, share_start)
    proof = _proof(reduced, parts)
    unary, cells = _integer_costs(reduced, parts, share_start)
    limit = ((cost - reduced.constant) << parts.shift) - parts.scaled
    table = reduced.table.copy()
    if limit < 2**60:
        forbid_pairs(reduced.graph, unary, cells, max(limit, -(2**60)), table)
    return Improving(proof.bound, proof.improving(cost), table)


def _integer_costs(reduced: Reduced, parts: Rounded, share_start: Ints) -> tuple[Ints, Ints]:
    """What each value and each pair costs above the minima, in units of 2^-shift."""
    graph, unary = reduced.graph, parts.priced.copy()
    for side, ends in ((0, graph.edge_b), (1, graph.edge_a)):
        sizes = graph.sizes[ends]
        value = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        first = np.repeat(share_start[:-1][side::2], sizes)
        np.subtract.at(unary, np.repeat(graph.start[ends], sizes) + value, parts.shares[first + value])
    unary -= np.repeat(parts.least[: graph.sizes.size], graph.sizes)
    cells = np.zeros(reduced.table.size, np.int64)
    cell_costs(graph, reduced.table, parts.shares, share_start, parts.shift, parts.least, cells)
    return unary, cells


def proven_bound(reduced: Reduced, price: Array, shares: Array, share_start: Ints) -> ProvenBound:
    """The bound that these prices and shares prove."""
    return _proof(reduced, _rounded(reduced, price, shares, share_start))


def _proof(reduced: Reduced, parts: Rounded) -> ProvenBound:
    bound = -((-parts.scaled) >> parts.shift) + reduced.constant
    base = max(-(2**61), min(2**61, parts.scaled))
    value_bound = np.minimum(parts.marginal, 2**61) + base
    return ProvenBound(bound, value_bound, parts.shift, reduced.constant, parts.scaled)


def reduced_costs(reduced: Reduced, price: Array, shares: Array, share_start: Ints) -> ReducedCosts:
    """The same bound and what every part of a selection costs above it."""
    parts = _rounded(reduced, price, shares, share_start)
    unary, cells = _integer_costs(reduced, parts, share_start)
    size = 2.0**-parts.shift
    return ReducedCosts(
        unary=np.asarray(unary * size, np.float64),
        table=np.asarray(cells * size, np.float64),
        price=np.asarray(parts.price * 2.0**-parts.price_bits, np.float64),
        bound_exact=float(parts.scaled * size) + reduced.constant,
        scaled=parts.scaled,
        shift=parts.shift,
        constant=reduced.constant,
    )


def _largest_price(memory: Memory, price: Array) -> float:
    """A bound on what the memory of any one class can cost."""
    before = np.concatenate([[0.0], np.cumsum(price)])
    if memory.seg_class.size == 0:
        return 1.0
    most = np.maximum.reduceat(memory.seg_usage, memory.seg_start[:-1])
    weight = before[memory.seg_hi] - before[memory.seg_lo]
    return float(np.bincount(memory.seg_class, weights=weight * most).max(initial=1.0))
