"""The compiled simulator equals the simulator, and paths of an order are bounds of all its runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import DocumentInvalid
from planner.predict.schedule.dependencies import order_graph
from planner.predict.schedule.least_makespan import least_makespan_s
from planner.predict.schedule.orders import build_order, order_findings
from planner.predict.schedule.paths import ChunkTimes
from planner.predict.schedule.run import known_paths, run_pipeline
from planner.predict.schedule.simulate import simulate
from planner.strategy.schedules import (
    GROUPED_SCHEDULES,
    LOOPED_SCHEDULES,
    SPLIT_SCHEDULES,
    V_SCHEDULES,
    ScheduleName,
    chunk_stages,
)


@dataclass(frozen=True)
class Pipeline:
    """An order, durations of its chunks and a hop; a backward pass takes no less than its forward."""

    schedule: ScheduleName
    sizes: tuple[int, int, int, int]
    times: ChunkTimes
    hop_s: float

    def makespan_s(self) -> float:
        """Simulated."""
        return run_pipeline(self.schedule, self.sizes, self.times, self.hop_s).makespan_s


@st.composite
def orders(draw: st.DrawFn) -> tuple[ScheduleName, tuple[int, int, int, int]]:
    """Legal sizes of every schedule."""
    schedule: ScheduleName = draw(st.sampled_from(get_args(ScheduleName)))
    v = 2 if schedule in V_SCHEDULES else draw(st.integers(2, 4)) if schedule in LOOPED_SCHEDULES else 1
    p = draw(st.integers(2 if schedule in LOOPED_SCHEDULES else 1, 8))
    g = draw(st.sampled_from([0, p, p + 1, 2 * p])) if schedule in GROUPED_SCHEDULES else 0
    m = draw(st.integers(1, 5 * p))
    if order_findings(schedule, p, v, m, g):
        m, g = 2 * p, 0
    return schedule, (p, v, m, g)


@st.composite
def pipelines(draw: st.DrawFn, order: tuple[ScheduleName, tuple[int, int, int, int]] | None = None) -> Pipeline:
    """Chunks of any times: alike, or up to ten times as long as another, or empty."""
    schedule, sizes = order or draw(orders())
    numbers = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    chunks, spread = sizes[0] * sizes[1], draw(st.sampled_from([0.0, 0.02, 0.3, 0.9]))
    work = numbers.uniform(1 - spread, 1 + spread, chunks)
    if draw(st.booleans()):
        work[numbers.random(chunks) < 0.2] = 0.0
    forward_s = work * draw(st.floats(0.2, 1.0))
    backward_s = forward_s * numbers.uniform(1.0, 3.0, chunks)
    gradient_s = backward_s * draw(st.floats(0.0, 0.5))
    return Pipeline(
        schedule, sizes, ChunkTimes(forward_s, backward_s, gradient_s), draw(st.sampled_from([0.0, 0.01, 0.2]))
    )


@settings(max_examples=150, deadline=None)
@given(pipelines())
def test_the_compiled_run_is_the_simulated_one(pipeline: Pipeline) -> None:
    ran = run_pipeline(pipeline.schedule, pipeline.sizes, pipeline.times, pipeline.hop_s)
    times = pipeline.times.forward_s, pipeline.times.backward_s, pipeline.times.weight_gradient_s
    drawn = simulate(order_graph(build_order(pipeline.schedule, *pipeline.sizes)), *times, send_s=pipeline.hop_s)
    assert ran.makespan_s == drawn.makespan_s
    assert np.array_equal(ran.start_s, drawn.start_s)
    assert np.array_equal(ran.end_s, drawn.end_s)


@settings(max_examples=100, deadline=None)
@given(pipelines(), st.integers(0, 2**32 - 1))
def test_every_hop_may_have_its_own_time(pipeline: Pipeline, seed: int) -> None:
    chunks = pipeline.sizes[0] * pipeline.sizes[1]
    hop_s = np.random.default_rng(seed).uniform(0.0, 0.3, chunks - 1)
    times = pipeline.times.forward_s, pipeline.times.backward_s, pipeline.times.weight_gradient_s
    drawn = simulate(order_graph(build_order(pipeline.schedule, *pipeline.sizes)), *times, send_s=hop_s)
    assert run_pipeline(pipeline.schedule, pipeline.sizes, pipeline.times, hop_s).makespan_s == drawn.makespan_s


@pytest.mark.parametrize(
    ("schedule", "v", "bubble"),
    [
        ("gpipe", 1, lambda p, f, i, w: (p - 1) * (f + i + w)),
        ("1f1b", 1, lambda p, f, i, w: (p - 1) * (f + i + w)),
        ("interleaved", 3, lambda p, f, i, w: (p - 1) * (f + i + w) / 3),
        ("zb_h1", 1, lambda p, f, i, w: (p - 1) * (f + i - w)),
    ],
)
@pytest.mark.parametrize("p", [2, 4, 7])
def test_equal_stages_have_the_published_bubble(
    schedule: ScheduleName, v: int, bubble: Callable[[int, float, float, float], float], p: int
) -> None:
    """arXiv 2104.04473 (GPipe, 1F1B, interleaved) and 2401.10241 (ZB-H1)."""
    f, i, w = 1.0, 1.3, 0.9
    each, m = np.ones(p * v) / v, 3 * p
    ran = run_pipeline(schedule, (p, v, m, 0), ChunkTimes(f * each, (i + w) * each, w * each), 0.0)
    assert ran.makespan_s == pytest.approx(m * (f + i + w) + bubble(p, f, i, w), rel=1e-12)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_path_of_one_run_bounds_all_others(data: st.DataObject) -> None:
    order = data.draw(orders())
    one, other = data.draw(pipelines(order)), data.draw(pipelines(order))
    path = run_pipeline(one.schedule, one.sizes, one.times, one.hop_s).longest_path()
    assert path.length_s(one.times, one.hop_s) == pytest.approx(one.makespan_s(), rel=1e-9)
    assert path.length_s(other.times, other.hop_s) <= other.makespan_s() * (1 + 1e-9)


@settings(max_examples=400, deadline=None)
@given(pipelines())
def test_known_paths_bound_every_run(pipeline: Pipeline) -> None:
    paths = known_paths(pipeline.schedule, pipeline.sizes)
    longest_s = max(path.length_s(pipeline.times, pipeline.hop_s) for path in paths)
    assert longest_s <= pipeline.makespan_s() * (1 + 1e-9)
    ranks = np.array(chunk_stages(*pipeline.sizes[:2], v_placed=pipeline.schedule in V_SCHEDULES))
    busy_s = np.bincount(ranks, pipeline.times.forward_s + pipeline.times.backward_s)
    assert longest_s >= pipeline.sizes[2] * busy_s.max() * (0.5 if pipeline.schedule in SPLIT_SCHEDULES else 1 - 1e-9)


@settings(max_examples=400, deadline=None)
@given(pipelines())
def test_the_least_makespan_is_below_every_run(pipeline: Pipeline) -> None:
    """Of the sum and the maximum of the devices alone, and of what their first chunks take at least."""
    times, (p, v, m, _) = pipeline.times, pipeline.sizes
    ranks = np.array(chunk_stages(p, v, v_placed=pipeline.schedule in V_SCHEDULES))
    busy_s = np.bincount(ranks, times.forward_s + times.backward_s)
    way_s = times.forward_s + (0.0 if pipeline.schedule in SPLIT_SCHEDULES else 1.0) * times.backward_s
    chunk_s = way_s[1:p].min() if p > 1 else 0.0
    seconds = np.array([[busy_s.sum()], [busy_s.max()], [pipeline.hop_s], [chunk_s], [times.weight_gradient_s.sum()]])
    least_s = least_makespan_s(pipeline.schedule, np.array([m]), np.array([p]), tuple(seconds))
    assert least_s[0] <= pipeline.makespan_s() * (1 + 1e-9)
    assert least_s[0] >= m * busy_s.max() * (1 - 1e-12)


def test_impossible_durations_are_refused() -> None:
    ones = np.ones(4)
    with pytest.raises(DocumentInvalid, match="times of 3 chunks"):
        run_pipeline("1f1b", (4, 1, 4, 0), ChunkTimes(ones[:3], ones[:3], ones[:3]), 0.0)
    with pytest.raises(DocumentInvalid, match="negative or not finite"):
        run_pipeline("1f1b", (4, 1, 4, 0), ChunkTimes(ones, 2 * ones, 3 * ones), 0.0)
