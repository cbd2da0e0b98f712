"""A simulated step conserves work, respects order and data, and gets no faster when anything gets slower."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from planner.predict.schedule.action import FORWARD, Action, Kind
from planner.predict.schedule.orders import order_findings
from planner.predict.schedule.simulate import simulate
from planner.predict.schedule.timeline import Timeline
from planner.strategy.schedules import GROUPED_SCHEDULES, LOOPED_SCHEDULES, V_SCHEDULES, ScheduleName
from tests.order_graphs import cached_graph

Durations = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
SCHEDULES: tuple[ScheduleName, ...] = get_args(ScheduleName)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[ScheduleName, int, int, int, int]:
    """Schedule, p, v, m, g; legal."""
    schedule = draw(st.sampled_from(SCHEDULES))
    v = 2 if schedule in V_SCHEDULES else draw(st.integers(2, 3)) if schedule in LOOPED_SCHEDULES else 1
    p = draw(st.integers(2, 5))
    m = draw(st.integers(1, 3 * p))
    g = draw(st.integers(p, 2 * p)) if schedule in GROUPED_SCHEDULES else 0
    if order_findings(schedule, p, v, m, g):
        m, g = 2 * p, 0
    return schedule, p, v, m, g


def durations(seed: int, chunks: int) -> Durations:
    """Forward, backward, weight gradient, hop; some of them zero."""
    random = np.random.default_rng(seed)
    forward = random.uniform(0, 2, chunks) * (random.random(chunks) > 0.1)
    weight = random.uniform(0, 2, chunks) * (random.random(chunks) > 0.1)
    return forward, weight + random.uniform(0, 2, chunks), weight, random.uniform(0, 1, chunks - 1)


def run(size: tuple[ScheduleName, int, int, int, int], times: Durations, blocking: bool = False) -> Timeline:
    """One simulated step."""
    forward, backward, weight, hop = times
    return simulate(cached_graph(*size), forward, backward, weight, send_s=hop, blocking_send=blocking)


SEEDS = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(sizes(), SEEDS, st.booleans())
def test_work_is_conserved_and_no_rank_does_two_things_at_once(
    size: tuple[ScheduleName, int, int, int, int], seed: int, blocking: bool
) -> None:
    _, p, v, m, _ = size
    times = durations(seed, p * v)
    ran = run(size, times, blocking)
    assert np.isclose(ran.busy_s.sum(), m * (times[0] + times[1]).sum())
    assert np.allclose(ran.busy_s + ran.bubble_s, ran.makespan_s)
    for rank in range(p):
        mine = ran.rank(rank)
        assert np.all(mine.start_s[1:] >= mine.end_s[:-1])
        assert np.all(mine.end_s >= mine.start_s)
        assert np.isclose((mine.end_s - mine.start_s).sum(), ran.busy_s[rank])
    assert ran.makespan_s >= ran.busy_s.max() * (1 - 1e-12)


@settings(deadline=None)
@given(sizes(), SEEDS)
def test_data_arrives_before_it_is_used(size: tuple[ScheduleName, int, int, int, int], seed: int) -> None:
    """Checked from the events alone, without the graph's own idea of a dependency."""
    schedule, p, v = size[:3]
    times = durations(seed, p * v)
    ran = run(size, times)
    events = [ran.event(index) for index in range(len(ran.start_s))]
    when = {(e.action.kind, e.action.chunk, e.action.microbatch): e for e in events}

    def gradient(chunk: int, microbatch: int) -> tuple[Kind, int, int]:
        full = (Kind.BACKWARD, chunk, microbatch)
        return full if full in when else (Kind.INPUT_GRADIENT, chunk, microbatch)

    for action in (Action(e.action.kind, e.action.chunk, e.action.microbatch) for e in events):
        here, c, i = when[action.kind, action.chunk, action.microbatch], action.chunk, action.microbatch
        needs = []
        if action.kind is Kind.FORWARD:
            needs = [(Kind.FORWARD, c - 1, i)] if c else []
        elif action.kind is Kind.WEIGHT_GRADIENT:
            needs = [(Kind.INPUT_GRADIENT, c, i)]
        else:
            needs = [(Kind.FORWARD, c, i)] + ([gradient(c + 1, i)] if c < p * v - 1 else [])
        for need in needs:
            source = when[need]
            hop = times[3][min(c, need[1])] if source.rank != here.rank else 0.0
            assert here.start_s >= source.end_s + hop, (schedule, action, need)


@settings(deadline=None)
@given(sizes(), SEEDS, st.booleans())
def test_the_critical_path_explains_the_makespan(
    size: tuple[ScheduleName, int, int, int, int], seed: int, blocking: bool
) -> None:
    ran = run(size, durations(seed, size[1] * size[2]), blocking)
    path = ran.critical_path()
    assert path[0].start_s == 0
    assert path[-1].end_s == ran.makespan_s
    for before, after in pairwise(path):
        assert after.start_s >= before.end_s
        if before.rank == after.rank and not blocking:
            assert after.start_s == before.end_s


@settings(deadline=None)
@given(sizes(), SEEDS, st.integers(0, 3), st.integers(0, 100), st.booleans())
def test_nothing_slower_makes_the_step_faster(
    size: tuple[ScheduleName, int, int, int, int], seed: int, which: int, place: int, blocking: bool
) -> None:
    times = durations(seed, size[1] * size[2])
    slower = [array.copy() for array in times]
    slower[which][place % len(slower[which])] += 0.7
    if which == 2:
        slower[1][place % len(slower[1])] += 0.7  # W is a part of B
    before = run(size, times, blocking).makespan_s
    after = run(size, (slower[0], slower[1], slower[2], slower[3]), blocking).makespan_s
    assert after >= before * (1 - 1e-12)


@settings(deadline=None)
@given(sizes())
def test_activations_are_all_freed(size: tuple[ScheduleName, int, int, int, int]) -> None:
    graph = cached_graph(*size)
    change = graph.in_flight_change()
    assert int(change.sum()) == 0
    assert int((graph.kind == FORWARD).sum()) == size[1] * size[2] * size[3]
    ran = simulate(graph, 1.0, 2.0, 1.0)
    for rank in range(size[1]):
        _, held = ran.in_flight(rank)
        assert int(held.min()) == 0
        assert int(held[-1]) == 0
        assert int(held.max()) == ran.peak_in_flight[rank]
