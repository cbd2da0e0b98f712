"""What a plan assumes about the spread of tokens over routed experts, with the even case beside it."""

from __future__ import annotations

import numpy as np

from planner.predict.candidate import Candidate
from planner.predict.cost.hardware import Hardware
from planner.predict.hottest_share import hottest_share
from planner.question.problem import Problem
from planner.question.routing import EVEN, load_of
from planner.search.evaluate import evaluate_split
from planner.search.row_context import strategy_context


def routing_notes(problem: Problem, hardware: Hardware, candidate: Candidate) -> tuple[str, ...]:
    """One sentence for a model with routed experts; none for another."""
    counts = [kind.moe.num_experts for kind in problem.model.layer_kinds if kind.moe is not None]
    if not counts:
        return ()
    load, ranks = load_of(problem.workload.routing, problem.model), candidate.strategy.ep
    if load.kind == "even":
        return ("tokens are spread evenly over the experts",)
    spread = f"tokens are spread over the experts {load.words}"
    if ranks == 1:
        return (f"{spread}; every rank holds all of them, so that none waits for another",)
    hottest = float(hottest_share(load, max(counts), np.array([float(ranks)]))[0])
    even_s = _even_step_s(problem, hardware, candidate)
    return (
        f"{spread}: the hottest of {ranks} expert-parallel ranks gets {hottest:.2f} times the mean;"
        f" spread evenly this plan would take {even_s:.4g} s a step",
    )


def _even_step_s(problem: Problem, hardware: Hardware, candidate: Candidate) -> float:
    """Step time of the same plan with tokens spread evenly."""
    workload = problem.workload.model_copy(update={"routing": EVEN})
    context = strategy_context(problem.model_copy(update={"workload": workload}), hardware, candidate.strategy)
    return evaluate_split(context, candidate.split).step_time_s
