"""How fast is this one strategy, and does it fit?  No search over degrees; the layers are still dealt optimally."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from planner.assemble_plan import assemble_plan
from planner.candidate import Candidate, Split
from planner.cost.hardware import Hardware, problem_hardware
from planner.cost.row_cost import CostModel
from planner.memory.activations import Relief
from planner.plan import Plan, SearchReport
from planner.problem import Problem
from planner.search.branch import split_rules
from planner.search.choices import RELIEFS
from planner.search.evaluate import evaluate_split
from planner.search.family_split import given_split
from planner.search.legality import broken_rules, model_shape
from planner.search.row_context import RowContext, row_context
from planner.search.split import best_split
from planner.search.split_terms import SplitRules
from planner.search.target_rules import TargetRules
from planner.strategy import Strategy
from planner.strategy_findings import STRATEGY_FLAG, strategy_finding
from planner.strategy_rows import StrategyRows, relief_of
from profiles.validation import Finding, FindingsInvalid, require


def estimate(
    problem: Problem,
    strategy: Strategy,
    chunk_layers: tuple[int, ...] | None = None,
    given: Collection[str] | None = None,
) -> Plan:
    """Predict one strategy, with its layers dealt optimally or as ``chunk_layers`` says.

    A strategy that does not fit gives a plan of status ``infeasible``, with the memory that it would need.  Raises
    FindingsInvalid with every broken rule of legality and of the problem's target, beside the fields that were
    ``given`` (None = all of them).
    """
    hardware = problem_hardware(problem)
    _check(problem, strategy, chunk_layers, given)
    context = strategy_context(problem, hardware, strategy)
    rules = split_rules(problem, hardware)
    candidate = _given(context, rules, chunk_layers) if chunk_layers else best_split(context, rules)
    fits = candidate is not None
    if candidate is None:
        candidate = _nearest(context, rules, chunk_layers, given)
    return _plan(problem, hardware, candidate, fits, chunk_layers is not None)


def estimate_if_it_fits(problem: Problem, strategy: Strategy) -> Plan | None:
    """Predict one strategy; None, and sooner, where it does not fit.  Raises as ``estimate`` does."""
    hardware = problem_hardware(problem)
    _check(problem, strategy, None, None)
    context = strategy_context(problem, hardware, strategy)
    candidate = best_split(context, split_rules(problem, hardware))
    return None if candidate is None else _plan(problem, hardware, candidate, fits=True, dealt=False)


def _plan(problem: Problem, hardware: Hardware, candidate: Candidate, fits: bool, dealt: bool) -> Plan:
    report = SearchReport(
        enumerated=1,
        pruned={},
        bounded=0,
        evaluated=1,
        proof="given" if dealt else "one strategy was given; its layers and relief are dealt optimally",
    )
    return assemble_plan(
        problem,
        hardware,
        candidate,
        status="feasible" if fits else "infeasible",
        lower_bound_s=candidate.step_time_s,
        report=report,
    )


def strategy_context(problem: Problem, hardware: Hardware, strategy: Strategy) -> RowContext:
    """Costs of one legal strategy; an illegal one has degrees that divide by zero."""
    row, reliefs = _row(strategy)
    costs = CostModel(problem.model, problem.workload, hardware, reliefs)
    keyed = costs.keyed(row)
    return row_context(costs, keyed[0], row, costs.rows(row, keyed))


def _row(strategy: Strategy) -> tuple[StrategyRows, tuple[Relief, ...]]:
    """The strategy as one row, and the reliefs that the row counts."""
    relief = relief_of(strategy)
    reliefs = RELIEFS if relief in RELIEFS else (*RELIEFS, relief)
    return StrategyRows.of([strategy], reliefs), reliefs


def _check(
    problem: Problem,
    strategy: Strategy,
    chunk_layers: tuple[int, ...] | None,
    given: Collection[str] | None,
) -> None:
    require(strategy_findings(problem, strategy, chunk_layers, given), STRATEGY_FLAG)
    # Of a legal strategy only: how many chunks there must be, its degrees say.
    require(layer_findings(problem, strategy, chunk_layers), "--layers")


def strategy_findings(
    problem: Problem,
    strategy: Strategy,
    chunk_layers: tuple[int, ...] | None,
    given: Collection[str] | None = None,
) -> list[Finding]:
    """Every rule of legality, else of the problem's target, that a strategy with this dealing of layers breaks."""
    shape = model_shape(problem.model, problem.workload, problem.cluster.num_devices)
    broken = [rule for rule, breaks in broken_rules(_row(strategy)[0], shape) if breaks[0]]
    if broken:
        return [strategy_finding(rule.message, "", rule.places, given) for rule in broken]
    rules = TargetRules(problem)
    return [
        strategy_finding(each, "", (*rules.about(strategy, each), "--target"), given)
        for each in rules.messages(strategy, chunk_layers)
    ]


def layer_findings(problem: Problem, strategy: Strategy, chunk_layers: tuple[int, ...] | None) -> list[Finding]:
    """What is wrong with a given dealing of the layers."""
    if chunk_layers is None:
        return []
    layers, chunks = problem.model.num_layers, strategy.num_chunks
    if len(chunk_layers) != chunks or sum(chunk_layers) != layers:
        wrong = f"{len(chunk_layers)} chunks with {sum(chunk_layers)} layers given; the strategy has {chunks} chunks,"
        return [Finding("", f"{wrong} the model {layers} layers", "give one number for each chunk of the strategy")]
    if min(chunk_layers) < 0:
        return [Finding("", "a chunk cannot hold a negative number of layers", "give 0 or more")]
    return []


def _given(context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...]) -> Candidate | None:
    """The given dealing with the fewest relieved layers that fit."""
    split = given_split(context, rules, chunk_layers)
    return None if split is None else evaluate_split(context, split)


def _nearest(
    context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...] | None, given: Collection[str] | None
) -> Candidate:
    """What a strategy that does not fit would look like with everything relieved that its policy relieves."""
    if chunk_layers is None:
        free = replace(rules, limit_bytes=float(np.finfo(np.float64).max) / 4, host_limit_bytes=float("inf"))
        found = best_split(context, free)
        if found is None:
            wrong = "the layers cannot be dealt to so many stages"
            raise FindingsInvalid([strategy_finding(wrong, "lower pp or vpp", ("pp", "vpp"), given)], STRATEGY_FLAG)
        chunk_layers = found.split.chunk_layers
    most = max(chunk_layers)
    return evaluate_split(context, Split(chunk_layers=chunk_layers, relieved=(most,) * context.strategy.pp))
