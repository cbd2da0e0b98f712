"""The plan of several back-ends is the best of them all: against one search a back-end, small random problems."""

from __future__ import annotations

from functools import cache

import pytest

from planner.backends.asked import asked_software, inside
from planner.backends.registry import names_with_files, with_files
from planner.errors import NoFeasiblePlan
from planner.model.load import load_model
from planner.plan.plan import BackEndAnswer, Plan
from planner.predict.physics.physics import TUNED
from planner.question.problem import ANY, UNRESTRICTED, Problem, Workload
from planner.search.across_backends import NEAR, compare_backends
from planner.search.find import find_plan
from planner.search.options import SearchOptions, SearchProgress
from planner.search.recheck import recheck_plan
from profiles.catalogue import load_cluster
from tests.sampling import drawn
from tests.search_problems import Size, random_problem

QUICK = SearchOptions(top_k=0)
SMALL = Size(max_devices=6, max_layers=5, max_batch=6)
# Those kept have plans of several back-ends, some copied from a larger space, some beaten by the unrestricted space.
SEEDS = drawn(range(5000, 5060), 16, kept=(5000, 5006, 5027, 5030, 5040, 5047, 5049, 5053))
ROUNDING = 1e-9


def question(seed: int, *backends: str) -> Problem:
    """A problem that every back-end can build; every third one pins nothing."""
    problem = random_problem(seed, SMALL, names_with_files()[0])
    change: dict[str, object] = {"backends": backends}
    if seed % 3 == 0:
        change |= {"pins": {}}
    return problem.model_copy(update={"constraints": problem.constraints.model_copy(update=change)})


@cache
def alone(seed: int, backend: str) -> Plan | None:
    """The proved plan of one back-end, searched by itself."""
    try:
        return find_plan(question(seed, backend), QUICK)
    except NoFeasiblePlan:
        return None


@cache
def together(seed: int) -> Plan | None:
    """The plan over all of them."""
    try:
        return find_plan(question(seed, ANY), QUICK)
    except NoFeasiblePlan:
        return None


def rows(plan: Plan) -> dict[str, BackEndAnswer]:
    return {row.backend: row for row in plan.backends}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plan_is_the_fastest_of_all_back_ends_and_every_row_is_true(seed: int) -> None:
    singles = {name: alone(seed, name) for name in names_with_files()}
    plan = together(seed)
    found = [each.step_time_s for each in singles.values() if each is not None]
    if plan is None:
        assert not found
        return
    assert plan.status == "optimal"
    assert plan.step_time_s == pytest.approx(min(found), rel=ROUNDING)
    table = rows(plan)
    assert set(table) == set(names_with_files())
    for name, single in singles.items():
        row = table[name]
        assert (row.step_time_s is None) == (single is None), row
        if single is None:
            assert row.reason
            continue
        assert row.step_time_s is not None
        assert row.lower_bound_s is not None
        assert row.gap is not None
        optimum_s = single.step_time_s
        assert row.lower_bound_s <= optimum_s * (1 + ROUNDING), "no plan of this back-end is below its bound"
        assert optimum_s * (1 - ROUNDING) <= row.step_time_s
        assert row.gap == pytest.approx(1 - row.lower_bound_s / row.step_time_s, abs=1e-12)
        assert 0 <= row.gap <= NEAR + ROUNDING
        assert row.slower_by == pytest.approx(row.step_time_s / plan.step_time_s - 1, abs=1e-12)
    first = plan.backends[0]
    assert (first.backend, first.step_time_s, first.gap) == (plan.backend, plan.step_time_s, 0.0)
    times = [row.step_time_s for row in plan.backends if row.step_time_s is not None]
    assert times == sorted(times)
    assert all(row.step_time_s is None for row in plan.backends[len(times) :])
    recheck_plan(Plan.model_validate_json(plan.canonical_json()), question(seed, ANY))


@pytest.mark.parametrize(("model", "devices", "batch"), [("llama-3.1-70b", 64, 1024), ("llama-3.1-405b", 1024, 512)])
def test_every_row_of_a_large_question_is_near_its_own_optimum(model: str, devices: int, batch: int) -> None:
    """Large enough that a search looks ahead: what it saw there counts where it then comes near its optimum only."""
    workload = Workload(global_batch_size=batch, sequence_length=8192)
    cluster = load_cluster("dgx-h100", devices)
    problem = Problem(model=load_model(model), cluster=cluster, workload=workload)
    compared = compare_backends(problem, asked_software(problem), QUICK)
    searched = [entry for entry in compared.entries if entry.best is not None]
    assert len(searched) >= 5
    for entry in searched:
        assert entry.best is not None
        assert entry.lower_bound_s >= entry.best.step_time_s * (1 - NEAR) * (1 - ROUNDING), entry.software.name


@pytest.mark.parametrize(("devices", "batch"), [(32, 64), (64, 64)])
def test_a_plan_that_cut_its_own_search_is_in_the_table(devices: int, batch: int) -> None:
    """The look-ahead of native and torchtitan finds plans for whose sake the search leaves out these very plans."""
    problem = Problem(
        model=load_model("llama-3.1-70b"),
        cluster=load_cluster("dgx-h100", devices),
        workload=Workload(global_batch_size=batch, sequence_length=4096),
    )
    gaps = {row.backend: row.gap for row in find_plan(problem, QUICK).backends if row.gap is not None}
    assert {"native", "torchtitan"} <= gaps.keys()
    assert max(gaps.values()) <= NEAR + ROUNDING


def test_the_problems_are_of_every_kind() -> None:
    plans = [plan for plan in map(together, SEEDS) if plan is not None]
    assert len(plans) >= len(SEEDS) // 2
    assert len({plan.backend for plan in plans}) >= 2
    assert any(row.step_time_s is None for plan in plans for row in plan.backends)
    tuned = {each.name for each in with_files() if each.releases[0].physics.name == "megatron-core"}
    assert sum(plan.backend in tuned for plan in plans) >= 5
    assert any(plan.unrestricted is not None for plan in plans)


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_what_is_copied_from_a_larger_space_is_what_its_own_search_finds(seed: int) -> None:
    holders = {each.name: each.inside for each in with_files() if each.inside}
    assert holders
    for name, holder in holders.items():
        problem = question(seed, holder, name)
        compared = compare_backends(problem, asked_software(problem), QUICK)
        own = alone(seed, name)
        entry = compared.entries[1]
        assert (entry.best is None) == (own is None)
        if entry.best is not None and own is not None and entry.copied:
            assert compared.fastest is compared.entries[0]
            assert entry.best.step_time_s == pytest.approx(own.step_time_s, rel=ROUNDING)
            assert entry.lower_bound_s == pytest.approx(own.step_time_s, rel=ROUNDING)


def test_copying_happens() -> None:
    copied = 0
    for seed in SEEDS[:20]:
        problem = question(seed, "megatron", "megatron-bridge")
        copied += compare_backends(problem, asked_software(problem), QUICK).entries[1].copied
    assert copied >= 5


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_faster_than_the_unrestricted_space_under_the_same_physics(seed: int) -> None:
    free = alone(seed, UNRESTRICTED)
    for each in with_files():
        single = alone(seed, each.name) if each.releases[0].physics == TUNED else None
        if single is not None:
            assert free is not None
            assert free.step_time_s <= single.step_time_s * (1 + ROUNDING)
    plan = together(seed)
    if plan is not None and plan.unrestricted is not None:
        assert free is not None
        told = plan.unrestricted
        assert free.step_time_s * (1 - ROUNDING) <= told.step_time_s < plan.step_time_s
        assert told.step_time_s * (1 - told.gap) <= free.step_time_s * (1 + ROUNDING)
        assert told.why
    if plan is not None and plan.unrestricted is None and free is not None:
        assert free.step_time_s >= plan.step_time_s * (1 - NEAR) * (1 - ROUNDING), "what is much faster is told"


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_the_same_question_gives_the_same_plan(seed: int) -> None:
    first = together(seed)
    again = None
    try:
        again = find_plan(Problem.model_validate_json(question(seed, ANY).canonical_json()), QUICK)
    except NoFeasiblePlan:
        assert first is None
    if first is not None:
        assert again is not None
        assert again.plan_id == first.plan_id
        assert again.canonical_json() == first.canonical_json()


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_without_a_comparison_the_plan_is_as_fast_and_has_no_table(seed: int) -> None:
    plan = together(seed)
    if plan is None:
        return
    lone = find_plan(question(seed, ANY), SearchOptions(top_k=0, compare=False))
    assert lone.step_time_s == plan.step_time_s
    assert lone.lower_bound_s == plan.lower_bound_s
    assert (lone.status, lone.backends, lone.unrestricted) == ("optimal", (), None)


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_what_is_told_while_searching_is_about_all_back_ends(seed: int) -> None:
    """The fastest plan so far only gets faster and counts only grow, whichever back-end is being searched."""
    told: list[SearchProgress] = []
    try:
        plan = find_plan(question(seed, ANY), QUICK, told.append)
    except NoFeasiblePlan:
        assert all(state.incumbent_s is None for state in told)
        return
    incumbents = [state.incumbent_s for state in told if state.incumbent_s is not None]
    assert incumbents == sorted(incumbents, reverse=True)
    assert incumbents[-1] == pytest.approx(plan.step_time_s)
    assert [state.evaluated for state in told] == sorted(state.evaluated for state in told)
    bounds = [state.lower_bound_s for state in told if state.lower_bound_s is not None]
    assert all(bound_s <= plan.step_time_s * (1 + ROUNDING) for bound_s in bounds)


def test_a_question_to_one_back_end_has_no_table() -> None:
    plan = next(plan for seed in SEEDS if (plan := alone(seed, names_with_files()[0])) is not None)
    assert plan.backends == ()
    assert plan.unrestricted is None
    assert inside(plan.problem, asked_software(plan.problem)[0]) == plan.problem
