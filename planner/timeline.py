"""When does each stage do what in a plan?  The plan's schedule, run by the event simulator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.candidate import Candidate
from planner.plan import Plan
from planner.schedule.orders import build_order
from planner.schedule.simulate import simulate
from planner.schedule.timeline import Timeline
from planner.strategy import Strategy

Array = NDArray[np.float64]

MOST_ACTIONS = 60_000
"""Longer steps are simulated with fewer micro-batches; what is cut is steady state, whose length is known."""


def plan_timeline(plan: Plan) -> Timeline:
    """Simulate the pipeline of a plan; the optimizer and data-parallel tail come after its end."""
    strategy = plan.chosen()
    forward, backward, gradient = (np.zeros(strategy.num_chunks) for _ in range(3))
    for stage in plan.stages:
        weights = _chunk_weights([chunk.num_layers for chunk in stage.chunks])
        for chunk, weight in zip(stage.chunks, weights, strict=True):
            forward[chunk.chunk] = stage.forward_s * weight
            backward[chunk.chunk] = stage.backward_s * weight
            gradient[chunk.chunk] = stage.weight_gradient_s * weight
    return _simulate(strategy, strategy.num_microbatches, forward, backward, gradient, plan.pipeline_hop_s)


def simulated_step_time_s(candidate: Candidate) -> float:
    """Step time with the pipeline simulated event by event instead of by its closed form."""
    strategy = candidate.strategy
    tail_s = candidate.step_time_s - candidate.makespan_s
    if strategy.pp == 1:
        return candidate.step_time_s
    forward, backward, gradient = (np.zeros(strategy.num_chunks) for _ in range(3))
    for stage, bill in enumerate(candidate.stages):
        chunks = [chunk for chunk in range(strategy.num_chunks) if strategy.chunk_stage(chunk) == stage]
        weights = _chunk_weights([candidate.split.chunk_layers[chunk] for chunk in chunks])
        for chunk, weight in zip(chunks, weights, strict=True):
            forward[chunk] = bill.forward_s * weight
            backward[chunk] = bill.backward_s * weight
            gradient[chunk] = bill.weight_gradient_s * weight
    count = _affordable_microbatches(strategy)
    timeline = _simulate(strategy, count, forward, backward, gradient, candidate.hop_s)
    cut = strategy.num_microbatches - count
    if cut == 0:
        return timeline.makespan_s + tail_s
    # In steady state every further micro-batch costs the same; measured over one more batch of micro-batches.
    step = max(strategy.microbatch_group_size, strategy.pp)
    longer = _simulate(strategy, count + step, forward, backward, gradient, candidate.hop_s)
    rate_s = (longer.makespan_s - timeline.makespan_s) / step
    return timeline.makespan_s + cut * rate_s + tail_s


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


def _simulate(
    strategy: Strategy, microbatches: int, forward: Array, backward: Array, gradient: Array, hop_s: float
) -> Timeline:
    order = build_order(strategy.schedule, strategy.pp, strategy.vpp, microbatches, strategy.microbatch_group_size)
    return simulate(
        order,
        forward_s=forward,
        backward_s=backward,
        weight_gradient_s=gradient,
        send_s=hop_s,
    )
