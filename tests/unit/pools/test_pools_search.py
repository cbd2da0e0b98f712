"""Plans over pools: one pool gives the single-pool optimum; more pools never hurt; every stage is costed twice."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import planner.search.pools.find as find_module
from planner.errors import DocumentInvalid, NoFeasiblePlan
from planner.model.load import load_model
from planner.model.spec import LayerRun
from planner.predict.schedule.paths import ChunkTimes
from planner.predict.schedule.run import run_pipeline
from planner.question.problem import UNRESTRICTED, Constraints, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.pools.assemble import assemble_pools_plan
from planner.search.pools.find import find_assignment
from planner.search.pools.microbatch_space import MicrobatchSpace
from planner.search.pools.plan import PoolsPlan
from planner.search.pools.problem import PoolsProblem
from planner.search.pools.step import simulated_stages
from planner.search.pools.step_objective import StepObjective, pace_mix, pace_shares
from planner.search.pools.sub_mesh import pool_hardware
from profiles.catalogue import load_cluster
from solver.arrays import Array
from solver.check import CheckFailed
from solver.stage_assignment.assign import assign
from solver.stage_assignment.evaluate import assignment_value
from solver.stage_assignment.tables import AssignmentTables, StageChoice
from tests.assignment_by_milp import StableAndLate, assign_by_milp

Pins = dict[str, int | str | bool]
PLAIN: Pins = {
    "cp": 1,
    "schedule": "1f1b",
    "axis_order": "tp-cp-ep-dp-pp",
    "dp_replicate": 1,
    "activation_offload": False,
}


def pools_problem(*pools: tuple[str, int], batch: int = 32, pins: Pins | None = None, **more: object) -> PoolsProblem:
    data = {
        "model": load_model("llama-3.1-8b"),
        "clusters": tuple(load_cluster(name, count) for name, count in pools),
        "workload": Workload(global_batch_size=batch, sequence_length=4096),
        "constraints": Constraints(pins=pins or {}),
        **more,
    }
    return PoolsProblem.model_validate(data)


def plan_of(problem: PoolsProblem) -> PoolsPlan:
    return assemble_pools_plan(problem, find_assignment(problem))


@pytest.mark.parametrize(
    ("cluster", "devices", "pins"),
    [
        ("dgx-h100", 8, {"tp": 2, "pp": 4, "micro_batch_size": 1, "zero_stage": 1, "recompute": "full"}),
        ("dgx-h100", 8, {"tp": 1, "pp": 2, "micro_batch_size": 2, "zero_stage": 1, "recompute": "full"}),
        ("dgx-a100-40g", 32, {"tp": 8, "pp": 4, "micro_batch_size": 4, "zero_stage": 0, "recompute": "none"}),
        ("dgx-a100-40g", 32, {"tp": 4, "pp": 2, "micro_batch_size": 2, "zero_stage": 1, "recompute": "full"}),
        ("dgx-h100", 16, {"tp": 8, "pp": 2, "micro_batch_size": 8, "zero_stage": 1, "recompute": "none"}),
        ("dgx-h100", 8, {"tp": 4, "pp": 1, "micro_batch_size": 4, "zero_stage": 1, "recompute": "full"}),
        ("l40s-8", 8, {"tp": 1, "pp": 8, "micro_batch_size": 1, "zero_stage": 0, "recompute": "full"}),
    ],
)
def test_one_pool_in_the_same_space_gives_the_single_pool_optimum(cluster: str, devices: int, pins: Pins) -> None:
    fixed = {**PLAIN, **pins, "optimizer_offload": False, **({"sp": True} if pins["tp"] != 1 else {})}
    single = Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster(cluster, devices),
        workload=Workload(global_batch_size=32, sequence_length=4096),
        constraints=Constraints(pins=fixed, backends=(UNRESTRICTED,)),
    )
    expected = find_plan(single, SearchOptions(top_k=0))
    pools = plan_of(pools_problem((cluster, devices), pins=fixed, hides_late_work=False))
    assert pools.step_time_s == pytest.approx(expected.step_time_s, rel=1e-9)
    assert expected.status == "optimal"
    assert pools.lower_bound_s <= expected.step_time_s * (1 + 1e-12)
    assert pools.gap < 0.08
    assert len(pools.stages) == len(expected.stages)
    # Ties between dealings are broken as each engine likes; the fullest stage must not need more than it may.
    assert max(stage.peak_memory_bytes.total for stage in pools.stages) <= expected.memory_limit_bytes


def test_hiding_late_work_and_free_orders_never_cost_time() -> None:
    pools = (("dgx-a100-40g", 8), ("dgx-h100", 8))
    free = plan_of(pools_problem(*pools))
    shown = plan_of(pools_problem(*pools, hides_late_work=False))
    in_order = plan_of(pools_problem(*pools, consecutive=True))
    assert free.step_time_s <= shown.step_time_s
    assert free.step_time_s <= in_order.step_time_s * (1 + 1e-12)


def test_another_pool_never_costs_time() -> None:
    alone = plan_of(pools_problem(("dgx-h100", 8)))
    both = plan_of(pools_problem(("dgx-h100", 8), ("l40s-8", 8)))
    assert both.step_time_s <= alone.step_time_s * (1 + 1e-12)


def test_the_faster_pool_holds_more_layers_and_the_counts_add_up() -> None:
    plan = plan_of(pools_problem(("dgx-a100-80g", 16), ("dgx-h100", 16), batch=128))
    slow, fast = plan.pools
    assert slow.layers + fast.layers == 32
    assert fast.layers > slow.layers > 0
    assert all(use.used <= use.devices for use in plan.pools)
    assert [stage.first_layer for stage in plan.stages] == np.cumsum(
        [0, *(s.layers for s in plan.stages[:-1])]
    ).tolist()
    for stage in plan.stages:
        degrees = stage.strategy
        assert degrees["tp"] * degrees["cp"] * degrees["dp"] == stage.devices
        assert degrees["dp"] * degrees["micro_batch_size"] == plan.microbatch_samples
        assert stage.peak_memory_bytes.total <= stage.memory_limit_bytes + 2
    assert sum(plan.breakdown_s.values()) == pytest.approx(plan.step_time_s)
    assert plan.gap == pytest.approx(1 - plan.lower_bound_s / plan.step_time_s)
    assert 0 <= plan.gap < 0.01
    assert plan.status == ("feasible" if plan.gap > 1e-9 else "optimal")


def test_the_bound_without_memory_holds_for_every_number_of_samples() -> None:
    problem = pools_problem(("dgx-a100-40g", 8), ("dgx-h100", 8))
    best = plan_of(problem)
    for samples in (2, 8):
        space = MicrobatchSpace(problem, pool_hardware(problem), samples)
        pinned = problem.model_copy(update={"constraints": Constraints(pins={"num_microbatches": 32 // samples})})
        try:
            step_s = plan_of(pinned).step_time_s
        except NoFeasiblePlan:
            continue
        assert space.bound_s() <= step_s
        assert best.step_time_s <= step_s * (1 + 1e-12)


def test_the_tables_of_a_real_model_are_solved_as_by_a_mixed_integer_program() -> None:
    pins: Pins = {"zero_stage": 1, "recompute": "full", "optimizer_offload": False}
    problem = pools_problem(("dgx-a100-40g", 8), ("l40s-8", 8), batch=16, pins=pins)
    model = problem.model
    short = model.model_copy(update={"layer_runs": (LayerRun(kind=0, count=6),)})
    problem = problem.model_copy(update={"model": short})
    space = MicrobatchSpace(problem, pool_hardware(problem), 4)
    stages = space.tables(4 * space.lowest_s)
    assert stages is not None
    tables = replace(stages.tables, most_stages=4)
    objective = StableAndLate(4)
    answer, program = assign(tables, objective), assign_by_milp(tables, objective)
    assert answer is not None
    assert program is not None
    assert answer.value.value == pytest.approx(program[0], rel=1e-6)


def test_recompute_and_offload_make_room_where_nothing_else_does() -> None:
    tight = pools_problem(("l40s-8", 8), ("dgx-a100-40g", 1), batch=8)
    without = tight.model_copy(
        update={"constraints": Constraints(forbids=("recompute", "activation_offload", "optimizer_offload"))}
    )
    free = plan_of(tight)
    try:
        assert free.step_time_s <= plan_of(without).step_time_s * (1 + 1e-12)
    except NoFeasiblePlan:
        relieved = [
            stage.recompute != "none" or stage.optimizer_offload or stage.activation_offload_layers > 0
            for stage in free.stages
        ]
        assert any(relieved)


def test_what_fits_nowhere_is_no_feasible_plan() -> None:
    with pytest.raises(NoFeasiblePlan, match="fits on"):
        find_assignment(pools_problem(("l40s-8", 1), ("dgx-a100-40g", 2), batch=8, model=load_model("llama-3.1-70b")))


def test_pins_of_other_schedules_are_refused() -> None:
    with pytest.raises(DocumentInvalid, match="1f1b"):
        find_assignment(pools_problem(("l40s-8", 8), pins={"schedule": "zbv"}))


def test_no_simulated_step_is_shorter_than_the_bound() -> None:
    draw = np.random.default_rng(11)
    tight = []
    for _ in range(400):
        stages, rounds = int(draw.integers(1, 9)), int(draw.integers(1, draw.choice([9, 40])))
        forward_s = draw.uniform(0.5, 1.5, stages)
        backward_s = forward_s * draw.uniform(1.0, 3.0, stages)
        hop_s = draw.uniform(0, 0.5, stages - 1)
        times = ChunkTimes(forward_s, backward_s, np.zeros(stages))
        step_s = run_pipeline("1f1b", (stages, 1, rounds, 0), times, hop_s).makespan_s
        whole_s = forward_s + backward_s
        bound_s = _bound_of_stages(forward_s / whole_s, whole_s, hop_s, rounds)
        assert bound_s <= step_s * (1 + 1e-12)
        total_s, hops_s, zero = np.array([whole_s.sum()]), np.array([hop_s.sum()]), np.zeros(1)
        assert StepObjective(rounds, 0.0).least(zero, total_s, hops_s, zero, stages)[0] <= bound_s * (1 + 1e-12)
        tight.append(bound_s / step_s)
    assert np.median(tight) > 0.95


def _bound_of_stages(forward_part: Array, whole_s: Array, hop_s: Array, rounds: int) -> float:
    """The bound of some stages, first one first, through the solver's tables: one option and one class a stage."""
    stages = len(whole_s)
    hop = np.zeros((stages, stages))
    hop[np.arange(stages - 1), np.arange(1, stages)] = hop_s
    tables = AssignmentTables(
        pool_units=np.ones(stages, dtype=np.int64),
        option_pool=np.arange(stages),
        option_units=np.ones(stages, dtype=np.int64),
        time=np.broadcast_to(whole_s[:, None, None, None], (stages, 1, stages, 1)),
        late=np.zeros((stages, 1, stages, 1)),
        span_class=np.zeros((stages + 1, 1), dtype=np.int64),
        hop=hop,
        pace_share=pace_shares(rounds, stages, forward_part)[:, :, None],
        pace_mix=pace_mix(rounds, stages),
    )
    choices = [StageChoice(index, 1, index, 0) for index in range(stages)]
    return assignment_value(tables, choices, StepObjective(rounds, 0.0)).value


def test_the_bound_of_stages_that_slow_down_towards_the_front_is_near_their_step() -> None:
    """Without the way of the last micro-batch, what stands in front could be slower for nothing."""
    rounds, whole_s, hop_s = 40, np.linspace(1.4, 1.0, 16), np.full(15, 0.02)
    times = ChunkTimes(whole_s / 3, whole_s * 2 / 3, np.zeros(16))
    step_s = run_pipeline("1f1b", (16, 1, rounds, 0), times, hop_s).makespan_s
    bound_s = _bound_of_stages(np.full(16, 1 / 3), whole_s, hop_s, rounds)
    assert 0.99 * step_s < bound_s <= step_s * (1 + 1e-12)


def test_no_assignment_of_real_stages_is_faster_than_its_bound_or_than_the_bound_of_the_plan() -> None:
    problem = pools_problem(("dgx-a100-40g", 8), ("dgx-h100", 8), batch=16)
    short = problem.model.model_copy(update={"layer_runs": (LayerRun(kind=0, count=8),)})
    problem = problem.model_copy(update={"model": short})
    plan, draw, tight = plan_of(problem), np.random.default_rng(5), []
    for samples in (1, 2, 4):
        space = MicrobatchSpace(problem, pool_hardware(problem), samples)
        stages = space.tables(8 * space.lowest_s)
        assert stages is not None
        for _ in range(60):
            assigned = _random_assignment(stages.tables, draw)
            if assigned is None:
                continue
            value = assignment_value(stages.tables, assigned, space.objective)
            step_s = simulated_stages(stages, assigned, space.num_microbatches, value.late).step_s
            assert value.value <= step_s * (1 + 1e-12)
            assert plan.lower_bound_s <= step_s * (1 + 1e-12)
            assert plan.step_time_s <= step_s * (1 + 1e-12)
            tight.append(value.value / step_s)
    assert len(tight) > 30
    assert np.median(tight) > 0.95


def _random_assignment(tables: AssignmentTables, draw: np.random.Generator) -> tuple[StageChoice, ...] | None:
    """Some stages on some sub-meshes with some policies that fit; None where the drawn ones do not."""
    items, left = tables.num_items, tables.pool_units.copy()
    cuts = np.sort(draw.choice(np.arange(1, items), int(draw.integers(0, 5)), replace=False))
    edges, chosen = [0, *cuts.tolist(), items], []
    for index, (start, stop) in enumerate(itertools.pairwise(edges)):
        options = np.flatnonzero(tables.option_units <= left[tables.option_pool])
        if not len(options) or stop - start > tables.span_class.shape[1]:
            return None
        option = int(draw.choice(options))
        left[tables.option_pool[option]] -= tables.option_units[option]
        span = tables.span_class[start, stop - start - 1]
        fits = np.flatnonzero(np.isfinite(tables.time[option, :, tables.position(len(edges) - 1 - index), span]))
        if not len(fits):
            return None
        chosen.append(StageChoice(start, stop - start, option, int(draw.choice(fits))))
    return tuple(chosen)


def test_moves_of_layers_find_the_fastest_of_equal_bounds() -> None:
    problem = pools_problem(("dgx-h100", 8), pins={"pp": 4, "tp": 2, "micro_batch_size": 1})
    answer = find_assignment(problem)
    assert answer.found is not None
    assert answer.space is not None
    counts, space = [stage.count for stage in answer.found.stages], answer.space
    tables = answer.found.tables
    for giver, taker in itertools.permutations(range(len(counts)), 2):
        moved = [count + (index == taker) - (index == giver) for index, count in enumerate(counts)]
        starts = np.concatenate([[0], np.cumsum(moved)[:-1]]).tolist()
        stages = tuple(
            replace(stage, start=start, count=count)
            for stage, start, count in zip(answer.found.stages, starts, moved, strict=True)
        )
        try:
            late_s = assignment_value(tables.tables, stages, space.objective).late
        except CheckFailed:
            continue
        assert answer.step_time_s <= simulated_stages(tables, stages, space.num_microbatches, late_s).step_s


def test_the_same_answer_comes_again_where_the_labels_of_the_proof_are_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_module, "PROOF_LIMIT", 200)
    problem = pools_problem(("dgx-a100-40g", 8), ("dgx-h100", 8))
    first, again = plan_of(problem), plan_of(problem)
    assert first == again
    assert first.status == "feasible"
    assert "labels" in first.search.proof
    monkeypatch.undo()
    proved = plan_of(problem)
    assert 0 < first.lower_bound_s <= proved.lower_bound_s <= proved.step_time_s <= first.step_time_s


def test_the_least_step_is_never_above_the_step() -> None:
    draw = np.random.default_rng(7)
    for rounds in (1, 2, 3, 7, 8, 33):
        objective = StepObjective(rounds, 1.0)
        for stages in range(1, 12):
            peak = draw.uniform(0.5, 1.0, 200)
            total = peak * draw.uniform(1.0, stages, 200)
            hops, late = draw.uniform(0, 0.5, 200) * (stages > 1), draw.uniform(0, 1, 200)
            value = objective.value(peak, total, hops, late, np.full(200, float(stages)))
            for most in (stages, stages + 1, stages + 20):
                assert (objective.least(peak, total, hops, late, most) <= value * (1 + 1e-12)).all()
