"""The step that is drawn says the same as the simulator, and every second of it is accounted for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from planner.answers.views.step import StepView, step_view
from planner.model.builtin import builtin_model
from planner.plan.plan import Plan
from planner.plan.timeline import plan_timeline
from planner.question.problem import Constraints, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
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
    assert (step.makespan_ns + step.after_ns) / 1e9 == pytest.approx(plan.step_time_s, rel=1e-6)
    assert max(step.actions.end_ns) == step.makespan_ns


def test_the_critical_path_is_that_of_the_simulator(plan: Plan, step: StepView) -> None:
    events = plan_timeline(plan).critical_path()
    shown = [(step.actions.start_ns[place], step.actions.microbatch[place]) for place in step.critical]
    assert shown == [(round(event.start_s * 1e9), event.action.microbatch) for event in events]
    assert step.actions.end_ns[step.critical[-1]] == step.makespan_ns


def needed(step: StepView, place: int, places: dict[tuple[str, int, int], int]) -> int:
    """The rule of planner/predict/schedule/dependencies.py, spelt out for one action."""
    actions = step.actions
    kind, chunk, microbatch = step.kinds[actions.kind[place]], actions.chunk[place], actions.microbatch[place]
    if kind == "forward":
        return places.get(("forward", chunk - 1, microbatch), -1)
    if kind == "weight gradient":
        return places["input gradient", chunk, microbatch]
    after = [places.get((name, chunk + 1, microbatch)) for name in ("backward", "input gradient")]
    return next((each for each in after if each is not None), places["forward", chunk, microbatch])


def test_every_action_uses_the_result_that_its_data_needs(step: StepView) -> None:
    actions = step.actions
    keys = zip((step.kinds[kind] for kind in actions.kind), actions.chunk, actions.microbatch, strict=True)
    places = {key: place for place, key in enumerate(keys)}
    assert list(actions.uses) == [needed(step, place, places) for place in range(len(actions.kind))]


def test_what_held_an_action_ended_when_it_began(step: StepView) -> None:
    actions = step.actions
    held = dict.fromkeys(step.holders, 0)
    for rank in range(step.num_ranks):
        for place in range(actions.offsets[rank], actions.offsets[rank + 1]):
            holder, first = step.holders[actions.held_by[place]], place == actions.offsets[rank]
            free_ns = 0 if first else actions.end_ns[place - 1]
            held[holder] += 1
            if holder == "result":
                assert actions.start_ns[place] > free_ns
                assert actions.end_ns[actions.uses[place]] <= actions.start_ns[place]
            elif holder == "own rank":
                assert not first
                assert actions.start_ns[place] == free_ns, "sends do not block here"
            else:
                assert (first, actions.start_ns[place]) == (True, 0)
    assert held["nothing"] == 1
    assert held["result"] >= step.num_ranks - 1


def test_the_critical_path_goes_from_holder_to_holder(step: StepView) -> None:
    actions = step.actions
    for before, place in itertools.pairwise(step.critical):
        if step.holders[actions.held_by[place]] == "result":
            assert before == actions.uses[place]
        else:
            # Where both came at once, the path may follow the result.
            assert before in (place - 1, actions.uses[place])


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
