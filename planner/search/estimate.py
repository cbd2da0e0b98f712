"""How fast is this one strategy, and does it fit?  No search over degrees; the layers are still dealt optimally."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.assemble_plan import assemble_plan
from planner.candidate import Candidate, Split
from planner.cost.hardware import Hardware, problem_hardware
from planner.cost.row_cost import CostModel
from planner.errors import DocumentInvalid
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
from planner.strategy_rows import StrategyRows, relief_of


def estimate(problem: Problem, strategy: Strategy, chunk_layers: tuple[int, ...] | None = None) -> Plan:
    """Predict one strategy, with its layers dealt optimally or as ``chunk_layers`` says.

    A strategy that does not fit gives a plan of status ``infeasible``, with the memory that it would need.  Raises
    DocumentInvalid listing every broken rule of legality and of the problem's target.
    """
    hardware = problem_hardware(problem)
    context = strategy_context(problem, hardware, strategy)
    _check(problem, context, strategy, chunk_layers)
    rules = split_rules(problem, hardware)
    candidate = _given(context, rules, chunk_layers) if chunk_layers else best_split(context, rules)
    fits = candidate is not None
    if candidate is None:
        candidate = _nearest(context, rules, chunk_layers)
    return _plan(problem, hardware, candidate, fits, chunk_layers is not None)


def estimate_if_it_fits(problem: Problem, strategy: Strategy) -> Plan | None:
    """Predict one strategy; None, and sooner, where it does not fit.  Raises as ``estimate`` does."""
    hardware = problem_hardware(problem)
    context = strategy_context(problem, hardware, strategy)
    _check(problem, context, strategy, None)
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
    """Costs of one strategy."""
    relief = relief_of(strategy)
    reliefs = RELIEFS if relief in RELIEFS else (*RELIEFS, relief)
    costs = CostModel(problem.model, problem.workload, hardware, reliefs)
    row = StrategyRows.of([strategy], reliefs)
    keyed = costs.keyed(row)
    return row_context(costs, keyed[0], row, costs.rows(row, keyed))


def _check(problem: Problem, context: RowContext, strategy: Strategy, chunk_layers: tuple[int, ...] | None) -> None:
    findings = strategy_findings(problem, context, strategy, chunk_layers)
    if findings:
        raise DocumentInvalid("; ".join(findings), where="--strategy", hint="change the fields named above")


def strategy_findings(
    problem: Problem, context: RowContext, strategy: Strategy, chunk_layers: tuple[int, ...] | None
) -> list[str]:
    """Every rule of legality or of the problem's target that a strategy with this dealing of layers breaks."""
    shape = model_shape(problem.model, problem.workload, problem.cluster.num_devices)
    findings = [rule.message for rule, broken in broken_rules(context.row, shape) if broken[0]]
    if not findings:
        findings += TargetRules(problem).messages(strategy, chunk_layers)
    if chunk_layers is not None:
        if len(chunk_layers) != strategy.num_chunks or sum(chunk_layers) != problem.model.num_layers:
            findings.append(
                f"{len(chunk_layers)} chunks with {sum(chunk_layers)} layers given; the strategy has"
                f" {strategy.num_chunks} chunks, the model {problem.model.num_layers} layers"
            )
        elif min(chunk_layers) < 0:
            findings.append("a chunk cannot hold a negative number of layers")
    return findings


def _given(context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...]) -> Candidate | None:
    """The given dealing with the fewest relieved layers that fit."""
    split = given_split(context, rules, chunk_layers)
    return None if split is None else evaluate_split(context, split)


def _nearest(context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...] | None) -> Candidate:
    """What a strategy that does not fit would look like with everything relieved that its policy relieves."""
    if chunk_layers is None:
        free = replace(rules, limit_bytes=float(np.finfo(np.float64).max) / 4, host_limit_bytes=float("inf"))
        found = best_split(context, free)
        if found is None:
            raise DocumentInvalid(
                "the layers cannot be dealt to so many stages", where="--strategy", hint="lower pp or vpp"
            )
        chunk_layers = found.split.chunk_layers
    most = max(chunk_layers)
    return evaluate_split(context, Split(chunk_layers=chunk_layers, relieved=(most,) * context.strategy.pp))
