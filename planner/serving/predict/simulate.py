"""One instance, iteration by iteration: what the closed form of ``steady_state`` is held against.

Requests come (closed loop, Poisson, or all at once), wait for a place, are read in chunks as the engine's policy says
and decode until their output is done.  Iteration times are those of ``InstanceTimes`` at the requests that decode and
the prompt tokens that are read, so that the two differ in the scheduler alone.  Requests go to the attention
data-parallel rank with fewest; pipeline stages share the running requests evenly.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.serving.predict.instance_times import InstanceTimes

Array = NDArray[np.float64]


@dataclass(slots=True)
class _Request:
    arrived: float
    chunks: int
    passes: int
    rank: int = 0
    first: float = math.nan


@dataclass(frozen=True, slots=True)
class Simulated:
    """What the requests saw, in the order in which they ended."""

    ttft: Array
    tpot: Array
    seconds: float
    """From the first arrival to the last token."""

    @property
    def requests_per_s(self) -> float:
        """Of the whole run, warm-up and drain with it."""
        return self.ttft.size / self.seconds


@dataclass(slots=True)
class _Instance:
    times: InstanceTimes
    places: int
    now: float = 0.0
    waiting: deque[_Request] = field(default_factory=deque)
    reading: list[deque[_Request]] = field(default_factory=list)
    running: list[tuple[int, int, _Request]] = field(default_factory=list)
    """Heap by the pass at which a request ends."""
    passed: int = 0
    number: int = 0

    @property
    def inside(self) -> int:
        """Requests that have a place."""
        return len(self.running) + sum(len(queue) for queue in self.reading)


def simulated(
    times: InstanceTimes,
    passes: NDArray[np.int64],
    *,
    places: float,
    concurrency: int | None = None,
    arrivals: Array | None = None,
) -> Simulated:
    """Run requests whose decoding takes ``passes`` iterations each.

    ``concurrency``: so many at once, in a closed loop; or ``arrivals``: when each comes, ascending.
    """
    most = max(int(min(places, times.max_sequences)), 1)
    instance = _Instance(times, most, reading=[deque() for _ in range(times.ranks)])
    ended: list[tuple[float, float]] = []
    left = deque(int(value) for value in passes)
    later = deque([] if arrivals is None else arrivals.tolist())
    start = later[0] if later else 0.0
    instance.now = start
    if concurrency is not None:
        for _ in range(min(concurrency, len(left))):
            instance.waiting.append(_Request(0.0, times.chunks, left.popleft()))
    while len(ended) < passes.size:
        while later and later[0] <= instance.now:
            instance.waiting.append(_Request(later.popleft(), times.chunks, left.popleft()))
        if not instance.waiting and not instance.inside and later:
            instance.now = later[0]
            continue
        for request in _iteration(instance, later[0] if later else math.inf):
            after = instance.now - request.first
            ended.append((request.first - request.arrived, after / max(request.passes, 1)))
            if concurrency is not None and left:
                instance.waiting.append(_Request(instance.now, times.chunks, left.popleft()))
    table = np.array(ended)
    return Simulated(table[:, 0], table[:, 1], instance.now - start)


def _iteration(instance: _Instance, next_arrival: float) -> list[_Request]:
    """One iteration, or as many as pass until something changes; the requests that ended."""
    times, ranks = instance.times, instance.times.ranks
    while instance.waiting and instance.inside < instance.places:
        request = instance.waiting.popleft()
        request.rank = min(range(ranks), key=lambda rank: len(instance.reading[rank]))
        instance.reading[request.rank].append(request)
    each = np.array([len(instance.running) / times.lanes])
    decode = float(times.at(times.decode, each)[0])
    read = _read(instance)
    if read:
        own_iteration = times.behaviour.policy == "prefill_first"
        seconds = float(times.prompt_s(np.array([float(len(read))]), *times.all_at(each)[1:])[0])
        instance.now += seconds if own_iteration else max(seconds, decode)
        if not own_iteration:
            instance.passed += 1
        for request in read:
            request.chunks -= 1
            if not request.chunks:
                instance.reading[request.rank].remove(request)
                request.first = instance.now
                instance.number += 1
                heapq.heappush(instance.running, (instance.passed + request.passes, instance.number, request))
    else:
        until = instance.running[0][0] - instance.passed
        if next_arrival < math.inf:
            until = min(until, max(math.ceil((next_arrival - instance.now) / decode), 1))
        instance.now += until * decode
        instance.passed += until
    ended = []
    while instance.running and instance.running[0][0] <= instance.passed:
        ended.append(heapq.heappop(instance.running)[2])
    return ended


def _read(instance: _Instance) -> list[_Request]:
    """Chunks of this iteration: of each rank, as many as its token budget holds."""
    most = max(int(instance.times.prompts_at_once), 1)
    return [request for queue in instance.reading for request in list(queue)[:most]]
