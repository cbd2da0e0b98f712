"""When does each stage do what in a plan?  The plan's schedule, run by the event simulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.candidate import Candidate
from planner.plan import Plan
from planner.schedule.dependencies import OrderGraph, cached_graph, order_graph
from planner.schedule.orders import build_order
from planner.schedule.simulate import simulate
from planner.schedule.timeline import Timeline
from planner.strategy import ScheduleName, Strategy

Array = NDArray[np.float64]

MOST_ACTIONS = 8_000
"""Longer steps are simulated with fewer micro-batches; what is cut is steady state, whose length is known."""


def plan_timeline(plan: Plan) -> Timeline:
    """Simulate the pipeline of a plan; the optimizer and data-parallel tail come after its end."""
    strategy = plan.chosen()
    layers = [0] * strategy.num_chunks
    for stage in plan.stages:
        for chunk in stage.chunks:
            layers[chunk.chunk] = chunk.num_layers
    times_s = [(stage.forward_s, stage.backward_s, stage.weight_gradient_s) for stage in plan.stages]
    durations = _chunk_durations(strategy, layers, times_s)
    # As long as the step itself: not worth remembering.
    return _simulate(
        order_graph(build_order(*_sizes(strategy, strategy.num_microbatches))), durations, plan.pipeline_hop_s
    )


def simulated_step_time_s(candidate: Candidate) -> float:
    """Step time with the pipeline simulated event by event instead of by its closed form."""
    strategy = candidate.strategy
    if strategy.pp == 1:
        return candidate.step_time_s
    times_s = [(bill.forward_s, bill.backward_s, bill.weight_gradient_s) for bill in candidate.stages]
    durations = _chunk_durations(strategy, candidate.split.chunk_layers, times_s)
    count = _affordable_microbatches(strategy)
    makespan_s = _simulate(cached_graph(*_sizes(strategy, count)), durations, candidate.hop_s).makespan_s
    cut = strategy.num_microbatches - count
    if cut:
        # In steady state every further micro-batch costs the same; measured over one more period of the schedule.
        step = max(strategy.microbatch_group_size, strategy.pp)
        longer = cached_graph(*_sizes(strategy, count + step))
        longer_s = _simulate(longer, durations, candidate.hop_s).makespan_s
        makespan_s += cut * (longer_s - makespan_s) / step
    return makespan_s + candidate.step_time_s - candidate.makespan_s


def _chunk_durations(
    strategy: Strategy, layers: Sequence[int], stage_times_s: Sequence[tuple[float, float, float]]
) -> tuple[Array, Array, Array]:
    """Forward, backward and weight-gradient seconds of each chunk: a stage's time in proportion to its layers."""
    durations = np.zeros((3, strategy.num_chunks))
    for stage, times_s in enumerate(stage_times_s):
        chunks = [chunk for chunk in range(strategy.num_chunks) if strategy.chunk_stage(chunk) == stage]
        weights = _chunk_weights([layers[chunk] for chunk in chunks])
        durations[:, chunks] = np.outer(times_s, weights)
    return durations[0], durations[1], durations[2]


def _chunk_weights(layers: list[int]) -> list[float]:
    total = sum(layers)
    return [count / total if total else 1.0 / len(layers) for count in layers]


def _affordable_microbatches(strategy: Strategy) -> int:
    """Micro-batches to simulate: all, or a multiple of the schedule's period that keeps the run short."""
    per_microbatch = 3 * strategy.num_chunks
    affordable = max(MOST_ACTIONS // per_microbatch, 4 * strategy.pp)
    period = max(strategy.microbatch_group_size, strategy.pp)
    cut = max(0, strategy.num_microbatches - affordable) // period * period
    return strategy.num_microbatches - cut


def _sizes(strategy: Strategy, microbatches: int) -> tuple[ScheduleName, int, int, int, int]:
    """What an order depends on."""
    return strategy.schedule, strategy.pp, strategy.vpp, microbatches, strategy.microbatch_group_size


def _simulate(graph: OrderGraph, durations: tuple[Array, Array, Array], hop_s: float) -> Timeline:
    forward_s, backward_s, weight_gradient_s = durations
    return simulate(graph, forward_s, backward_s, weight_gradient_s, send_s=hop_s)
