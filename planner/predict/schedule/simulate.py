"""The time of a pipeline step: one event simulator for every order.

Start of an action = the latest of: the end of the one before it on its rank (plus its send, where sends block), and the
end of the action whose data it needs plus the hop, where that lies on another rank.  Sends are asynchronous unless
``blocking_send``; links are taken as free (one stage sends to one neighbour each way).
O(actions) in plain floats; the order's structure is compiled once (``dependencies``) and reused for other durations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from planner.errors import DocumentInvalid
from planner.predict.schedule.action import Order
from planner.predict.schedule.dependencies import OrderGraph, order_graph
from planner.predict.schedule.timeline import Timeline
from solver.arrays import Array, Ints


def simulate(
    order: Order | OrderGraph,
    forward_s: ArrayLike,
    backward_s: ArrayLike,
    weight_gradient_s: ArrayLike,
    *,
    send_s: ArrayLike = 0.0,
    blocking_send: bool = False,
    start_offset_s: ArrayLike = 0.0,
    end_extra_s: ArrayLike = 0.0,
) -> Timeline:
    """Run ``order`` and return its timeline.

    ``forward_s``, ``backward_s`` (input plus weight gradient, recompute folded in) and ``weight_gradient_s`` (the part
    of ``backward_s`` that is W): one value, or one a chunk.  ``send_s``: one value, or one for each hop c -> c+1; it
    counts only where the two chunks lie on different ranks.  ``blocking_send`` holds the sender's compute as well.
    ``start_offset_s`` (before the first action) and ``end_extra_s`` (after the last): one value, or one a rank.
    Raises ``DocumentInvalid`` for an order that deadlocks or durations that are negative, not finite or miscounted.
    """
    graph = order if isinstance(order, OrderGraph) else order_graph(order)
    chunks, ranks = graph.num_chunks, graph.num_ranks
    forward = _durations("forward_s", forward_s, chunks)
    backward = _durations("backward_s", backward_s, chunks)
    weight = _durations("weight_gradient_s", weight_gradient_s, chunks)
    if bool(np.any(weight > backward)):
        raise DocumentInvalid("weight_gradient_s is more than backward_s, which it is a part of", where="durations")
    hop_s, hold_s = _hops(graph, _durations("send_s", send_s, max(chunks - 1, 0)), blocking_send)
    duration = np.stack([forward, backward, backward - weight, weight])[graph.kind, graph.chunk]
    offset_s = _durations("start_offset_s", start_offset_s, ranks)
    extra_s = _durations("end_extra_s", end_extra_s, ranks)
    start_s, end_s = _run(graph, duration.tolist(), hop_s.tolist(), hold_s, offset_s.tolist())
    return _timeline(graph, (start_s, end_s, hop_s), duration, extra_s)


def _timeline(graph: OrderGraph, times: tuple[Array, Array, Array], duration: Array, extra_s: Array) -> Timeline:
    """Makespan, busy and idle time from starts, ends and hops."""
    start_s, end_s, hop_s = times
    last = np.array([end_s[offset - 1] for offset in graph.offsets[1:]]) + extra_s
    busy = np.add.reduceat(duration, np.array(graph.offsets[:-1])) + extra_s
    makespan_s = float(last.max())
    return Timeline(
        graph=graph,
        start_s=start_s,
        end_s=end_s,
        hop_s=hop_s,
        end_extra_s=extra_s,
        makespan_s=makespan_s,
        busy_s=busy,
        bubble_s=makespan_s - busy,
        peak_in_flight=graph.peak_in_flight_by_rank(),
        peak_in_flight_by_chunk=graph.peak_in_flight_by_chunk(),
    )


def _run(
    graph: OrderGraph, duration: Sequence[float], hop_s: Sequence[float], hold_s: Sequence[float], offset_s: list[float]
) -> tuple[Array, Array]:
    """Start and end of every action; the one loop of the simulator."""
    depends_on: list[int] = graph.depends_on.tolist()
    start = [0.0] * len(duration)
    end = [0.0] * len(duration)
    free_s = offset_s
    for rank, first, stop in graph.segments:
        now = free_s[rank]
        for index in range(first, stop):
            cause = depends_on[index]
            if cause >= 0:
                arrival = end[cause] + hop_s[index]
                if arrival > now:  # noqa: PLR1730  (max() doubles the time of this loop)
                    now = arrival
            start[index] = now
            now += duration[index]
            end[index] = now
            if hold_s:
                now += hold_s[index]
        free_s[rank] = now
    return np.array(start), np.array(end)


def _hops(graph: OrderGraph, send_s: Array, blocking: bool) -> tuple[Array, list[float]]:
    """Hop before each action, and (blocking sends only, else empty) hold after each action."""
    hop_s = np.zeros(len(graph.kind))
    waits = graph.depends_on >= 0
    cause = graph.depends_on[waits]
    here, there = graph.chunk[waits], graph.chunk[cause]
    crosses = graph.chunk_rank[here] != graph.chunk_rank[there]
    lower: Ints = np.minimum(here, there)
    hop_s[waits] = np.where(crosses, send_s[np.minimum(lower, len(send_s) - 1)] if len(send_s) else 0.0, 0.0)
    if not blocking:
        return hop_s, []
    hold_s = np.zeros(len(graph.kind))
    hold_s[cause] = hop_s[waits]
    return hop_s, hold_s.tolist()


def _durations(name: str, value: ArrayLike, count: int) -> Array:
    """``value`` as ``count`` finite, non-negative floats."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != count):
        raise DocumentInvalid(
            f"{name} has shape {array.shape}, must be one value or {count}", where=f"schedule#/{name}"
        )
    if not bool(np.all(np.isfinite(array) & (array >= 0))):
        raise DocumentInvalid(f"{name} has a value that is negative or not finite", where=f"schedule#/{name}")
    return np.broadcast_to(array, (count,)).astype(np.float64)
