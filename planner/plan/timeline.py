"""The timeline of a plan, when each stage does what: the plan's schedule, run action by action."""

from __future__ import annotations

import numpy as np

from planner.plan.plan import Plan, StagePlan
from planner.predict.schedule.dependencies import order_graph
from planner.predict.schedule.orders import build_order
from planner.predict.schedule.simulate import simulate
from planner.predict.schedule.timeline import Timeline


def plan_timeline(plan: Plan) -> Timeline:
    """Simulate the pipeline of a plan; the optimizer and data-parallel tail come after its end.

    The makespan is the one that the search found: the same arithmetic over the same chunk times.
    """
    strategy = plan.chosen()
    durations = np.zeros((3, strategy.num_chunks))
    for stage in plan.stages:
        for chunk, times_s in zip(stage.chunks, _chunk_times(stage), strict=True):
            durations[:, chunk.chunk] = times_s
    # As long as the step itself: not worth remembering.
    graph = order_graph(build_order(strategy.schedule, *strategy.order_sizes))
    return simulate(graph, *durations, send_s=plan.pipeline_hop_s)


def _chunk_times(stage: StagePlan) -> list[tuple[float, float, float]]:
    """Forward, backward and weight-gradient seconds of each chunk of a stage.

    A plan of an older version says those of the whole stage alone: its chunks share them by their layers.
    """
    if stage.chunk_forward_s:
        return list(zip(stage.chunk_forward_s, stage.chunk_backward_s, stage.chunk_weight_gradient_s, strict=True))
    alike = 1.0 / len(stage.chunks)
    shares = [chunk.num_layers / stage.layers if stage.layers else alike for chunk in stage.chunks]
    return [(share * stage.forward_s, share * stage.backward_s, share * stage.weight_gradient_s) for share in shares]
