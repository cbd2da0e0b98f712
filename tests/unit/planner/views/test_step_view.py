"""Does the step that is drawn say the same as the simulator, and is every second of it accounted for?"""

from __future__ import annotations

import numpy as np
import pytest

from planner.model.builtin import builtin_model
from planner.plan import Plan
from planner.problem import Constraints, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.timeline import plan_timeline
from planner.views.step import StepView, step_view
from profiles.catalogue import load_cluster
from profiles.scaling import scale_cluster


@pytest.fixture(scope="module", params=["1f1b", "interleaved", "zb_h1"])
def plan(request: pytest.FixtureRequest) -> Plan:
    """A plan with a pipeline of four."""
    problem = Problem(
        model=builtin_model("llama-3.1-8b"),
        cluster=scale_cluster(load_cluster("dgx-a100-80g"), 8, "--devices"),
        workload=Workload(global_batch_size=16, sequence_length=4096),
        constraints=Constraints(pins={"pp": 4, "schedule": request.param}),
    )
    return find_plan(problem, SearchOptions(top_k=0))


@pytest.fixture(scope="module")
def step(plan: Plan) -> StepView:
    return step_view(plan)


def test_every_nanosecond_of_a_rank_is_work_or_idle(step: StepView) -> None:
    actions = step.actions
    for rank in range(step.num_ranks):
        mine = slice(actions.offsets[rank], actions.offsets[rank + 1])
        start, end = np.array(actions.start_ns[mine]), np.array(actions.end_ns[mine])
        assert (start[1:] >= end[:-1]).all()
        # Rounding to nanoseconds: half of one an end.
        assert abs((end - start).sum() - step.busy_ns[rank]) <= len(start)
        assert abs(step.busy_ns[rank] + step.bubble_ns[rank] - step.makespan_ns) <= 2
    idle = sum(step.bubble_ns) / (step.num_ranks * step.makespan_ns)
    assert step.bubble_fraction == pytest.approx(idle, abs=1e-6)


def test_the_step_ends_when_the_plan_says(plan: Plan, step: StepView) -> None:
    assert (step.makespan_ns + step.after_ns) / 1e9 == pytest.approx(plan.simulated_step_time_s, rel=1e-6)
    assert max(step.actions.end_ns) == step.makespan_ns


def test_the_critical_path_is_that_of_the_simulator(plan: Plan, step: StepView) -> None:
    events = plan_timeline(plan).critical_path()
    shown = [(step.actions.start_ns[place], step.actions.microbatch[place]) for place in step.critical]
    assert shown == [(round(event.start_s * 1e9), event.action.microbatch) for event in events]
    assert step.actions.end_ns[step.critical[-1]] == step.makespan_ns


def test_results_arrive_before_they_are_used(step: StepView) -> None:
    transfers, actions = step.transfers, step.actions
    starts = {
        (rank, actions.microbatch[place], step.kinds[actions.kind[place]] != "forward", actions.start_ns[place])
        for rank in range(step.num_ranks)
        for place in range(actions.offsets[rank], actions.offsets[rank + 1])
    }
    assert len(transfers.from_rank) > 0
    for place, end_ns in enumerate(transfers.end_ns):
        key = (transfers.to_rank[place], transfers.microbatch[place], transfers.gradient[place])
        assert any(start[:3] == key and start[3] >= end_ns - 1 for start in starts)


def test_memory_peaks_at_the_bill(plan: Plan, step: StepView) -> None:
    for stage, memory in zip(plan.stages, step.memory, strict=True):
        bill = stage.peak_memory_bytes
        peak = memory.resident_bytes + max(memory.activation_bytes)
        assert peak == pytest.approx(bill.total, abs=len(memory.at_ns))
        assert memory.chunks_held[-1] == 0
        assert memory.activation_bytes[-1] == 0
