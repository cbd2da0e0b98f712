"""An answer says so where the ways to deal the layers were too many to look at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.backends.asked import problem_hardware
from planner.model.load import load_model
from planner.predict.candidate import Split
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate, estimate_if_it_fits
from planner.search.evaluate import evaluate_split, run_split
from planner.search.line_split import LeftOpen, best_line
from planner.search.row_context import strategy_context
from planner.search.split import best_split
from planner.search.split_limits import split_rules
from planner.strategy.strategy import RecomputePolicy, Strategy
from profiles.catalogue import load_cluster

STRATEGY = Strategy(tp=4, sp=True, pp=16, num_microbatches=64, zero_stage=1, schedule="1f1b", recompute="full")


def question(layers_alike: bool) -> Problem:
    """Nearly alike dealings of 80 layers to 16 stages, or stages that one layer fills."""
    model = load_model("llama-3.1-70b")
    if not layers_alike:
        runs = tuple(run.model_copy(update={"count": 16}) for run in model.layer_runs)
        model = model.model_copy(update={"layer_runs": runs})
    return Problem(
        model=model,
        cluster=load_cluster("dgx-h100", 64),
        workload=Workload(global_batch_size=64, sequence_length=4096),
        constraints=Constraints(backends=("unrestricted",)),
    )


def test_an_estimate_says_what_it_left_open() -> None:
    problem, left = question(layers_alike=True), LeftOpen()
    hardware = problem_hardware(problem)
    found = best_split(strategy_context(problem, hardware, STRATEGY), split_rules(problem, hardware), left=left)
    assert found is not None
    assert 0 < left.bound_s < found.step_time_s
    open_share = f"but for {1 - left.bound_s / found.step_time_s:.1%}"
    plan = estimate_if_it_fits(problem, STRATEGY)
    assert plan is not None
    assert open_share in plan.search.proof
    assert "dealt optimally, but for" in estimate(problem, STRATEGY, relief="where_needed").search.proof


def test_an_estimate_of_few_dealings_leaves_nothing_open() -> None:
    problem, left = question(layers_alike=False), LeftOpen()
    hardware = problem_hardware(problem)
    found = best_split(strategy_context(problem, hardware, STRATEGY), split_rules(problem, hardware), left=left)
    assert found is not None
    assert np.isinf(left.bound_s)
    plan = estimate_if_it_fits(problem, STRATEGY)
    assert plan is not None
    assert plan.search.proof.endswith("dealt optimally")


def test_what_is_known_of_an_order_changes_no_dealing() -> None:
    """The paths of one program cut those of the next one: what is found stays, what is not faster is not found."""
    problem, left, known = question(layers_alike=False), LeftOpen(), 0
    runs = tuple(run.model_copy(update={"count": 21}) for run in problem.model.layer_runs)
    problem = problem.model_copy(update={"model": problem.model.model_copy(update={"layer_runs": runs})})
    hardware = problem_hardware(problem)
    for tp, zero in ((4, 1), (2, 1), (4, 2), (8, 1)):
        strategy = replace(STRATEGY, tp=tp, pp=8, num_microbatches=16 * tp // 8, zero_stage=zero, recompute="none")
        context, rules = strategy_context(problem, hardware, strategy), split_rules(problem, hardware)
        alone = best_line(context, rules, np.inf, None, LeftOpen())
        assert alone is not None
        before = bool(left.paths)
        found = best_line(context, rules, alone.step_time_s * (1 + 1e-9), None, left)
        assert found is not None
        assert found.split == alone.split
        assert best_line(context, rules, alone.step_time_s, None, left) is None
        known += before
    assert known > 0


def test_the_step_time_of_a_split_is_that_of_its_candidate() -> None:
    """Also where it relieves nothing, and the relief is no part of it."""
    problem = question(layers_alike=True)
    hardware = problem_hardware(problem)
    choices: tuple[RecomputePolicy, ...] = ("full", "selective", "none")
    for recompute in choices:
        for relieved in (0, 2):
            context = strategy_context(problem, hardware, replace(STRATEGY, recompute=recompute))
            split = Split(chunk_layers=(4, *(5,) * 12, 6, *(5,) * 2), relieved=(relieved * (recompute != "none"),) * 16)
            candidate = evaluate_split(context, split)
            step_s, run = run_split(context, split)
            assert (step_s, run.makespan_s) == (candidate.step_time_s, candidate.makespan_s)
