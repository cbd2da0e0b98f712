"""How fast is this one strategy, and does it fit?  No search over degrees; the layers are still dealt optimally."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from planner.backends.asked import asked_software, inside, problem_hardware, the_software, why_not_these_devices
from planner.backends.backend import Software
from planner.backends.rules.legality import broken_rules, model_shape
from planner.backends.rules.strategy_findings import STRATEGY_FLAG, strategy_finding
from planner.candidate import Candidate, Split
from planner.cost.hardware import Hardware
from planner.errors import NoFeasiblePlan
from planner.plan import BackEndAnswer, Plan, SearchReport
from planner.problem import Problem
from planner.search.assemble_plan import assemble_plan
from planner.search.backend_rules import BackEndRules
from planner.search.branch import split_rules
from planner.search.evaluate import evaluate_split
from planner.search.family_split import given_split
from planner.search.row_context import RowContext, strategy_context, strategy_row
from planner.search.spelled import as_spelled
from planner.search.split import best_split
from planner.search.split_terms import SplitRules
from planner.search.unsaid import with_unsaid
from planner.strategy import Strategy
from profiles.validation import Finding, FindingsInvalid, require

LAYERS_FLAG = "--layers"


def estimate(
    problem: Problem,
    strategy: Strategy,
    chunk_layers: tuple[int, ...] | None = None,
    given: Collection[str] | None = None,
) -> Plan:
    """Predict one strategy, with its layers dealt optimally or as ``chunk_layers`` says.

    Of several back-ends the fastest that runs the strategy answers, one in which it fits before one in which it does
    not; the others stand in the plan's table.  A strategy that does not fit gives a plan of status ``infeasible``, with
    the memory that it would need.  Raises FindingsInvalid with every broken rule of legality and of the (first)
    back-end, beside the fields that were ``given`` (None = all of them).
    """
    made, refused = list[Plan](), list[FindingsInvalid]()
    answers = list[BackEndAnswer]()
    asked = asked_software(problem)
    for wanted in asked:
        reason = why_not_these_devices(wanted, problem) if len(asked) > 1 else None
        try:
            if reason is None:
                made.append(_estimate_in(problem, wanted, strategy, chunk_layers, given))
        except FindingsInvalid as error:
            refused.append(error)
            reason = error.what
        if reason is not None:
            answers.append(BackEndAnswer(backend=wanted.name, release=wanted.release.version, reason=reason))
    if not made:
        raise refused[0] if refused else _no_devices(answers)
    order = sorted(made, key=lambda plan: (plan.status == "infeasible", plan.step_time_s))
    if len(asked) == 1:
        return order[0]
    rows = [_row(plan, order[0].step_time_s) for plan in order]
    return order[0].model_copy(update={"backends": (*rows, *answers)})


def _no_devices(answers: Sequence[BackEndAnswer]) -> NoFeasiblePlan:
    reasons = "; ".join(f"{each.backend} {each.reason}" for each in answers)
    return NoFeasiblePlan(reasons, binding="devices", relaxations=("name another --backend",))


def _row(plan: Plan, fastest_s: float) -> BackEndAnswer:
    """A back-end's line of an estimate: a given strategy bounds nothing."""
    fits = plan.status != "infeasible"
    return BackEndAnswer(
        backend=plan.backend,
        release=plan.release,
        step_time_s=plan.step_time_s if fits else None,
        slower_by=plan.step_time_s / fastest_s - 1.0 if fits else None,
        peak_memory_bytes=plan.peak_memory_bytes,
        fits_probability=plan.fits_probability,
        reason=None if fits else "it does not fit in memory",
    )


def _estimate_in(
    problem: Problem,
    wanted: Software,
    strategy: Strategy,
    chunk_layers: tuple[int, ...] | None,
    given: Collection[str] | None,
) -> Plan:
    own = inside(problem, wanted)
    hardware = problem_hardware(own)
    own_rules = BackEndRules(own)
    strategy = own_rules.spelled(with_unsaid(strategy, given, own_rules), chunk_layers)
    _check(own, strategy, chunk_layers, given)
    context = strategy_context(own, hardware, strategy)
    rules = split_rules(own, hardware)
    candidate = _given(context, rules, chunk_layers) if chunk_layers else best_split(context, rules)
    fits = candidate is not None
    if candidate is None:
        candidate = _nearest(context, rules, chunk_layers, given)
    return _plan(problem, wanted, hardware, as_spelled(own, hardware, candidate), fits, chunk_layers is not None)


def estimate_if_it_fits(problem: Problem, strategy: Strategy) -> Plan | None:
    """Predict one strategy in the one back-end of a problem; None, and sooner, where it does not fit.

    Raises as ``estimate`` does.
    """
    wanted, hardware = the_software(problem), problem_hardware(problem)
    _check(problem, strategy, None, None)
    context = strategy_context(problem, hardware, strategy)
    candidate = best_split(context, split_rules(problem, hardware))
    if candidate is None:
        return None
    return _plan(problem, wanted, hardware, as_spelled(problem, hardware, candidate), fits=True, dealt=False)


def _plan(
    problem: Problem, wanted: Software, hardware: Hardware, candidate: Candidate, fits: bool, dealt: bool
) -> Plan:
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
        software=wanted,
        status="feasible" if fits else "infeasible",
        lower_bound_s=candidate.step_time_s,
        report=report,
    )


def _check(
    problem: Problem,
    strategy: Strategy,
    chunk_layers: tuple[int, ...] | None,
    given: Collection[str] | None,
) -> None:
    require(legality_findings(problem, strategy, given), STRATEGY_FLAG)
    # Of a legal strategy only: how many chunks there must be, its degrees say.
    require(layer_findings(problem, strategy, chunk_layers), LAYERS_FLAG)
    require(backend_findings(problem, strategy, None, given), STRATEGY_FLAG)
    if chunk_layers is not None:
        # What is broken only now is broken by the dealing, whatever fields its rule compares it with.
        broken = BackEndRules(problem).broken(strategy, chunk_layers)
        hint = "deal the layers otherwise, or leave it to the planner"
        wrong = [Finding("", f"{each.rule}: {each.message}", hint, ("--backend",)) for each in broken]
        require(wrong, LAYERS_FLAG)


def strategy_findings(
    problem: Problem,
    strategy: Strategy,
    chunk_layers: tuple[int, ...] | None,
    given: Collection[str] | None = None,
) -> list[Finding]:
    """Every rule of legality, else of the problem's one back-end, that a strategy with these layers breaks."""
    illegal = legality_findings(problem, strategy, given)
    return illegal or backend_findings(problem, strategy, chunk_layers, given)


def legality_findings(problem: Problem, strategy: Strategy, given: Collection[str] | None) -> list[Finding]:
    """Every rule of legality that a strategy breaks."""
    shape = model_shape(problem.model, problem.workload, problem.cluster.num_devices)
    broken = [rule for rule, breaks in broken_rules(strategy_row(strategy)[0], shape) if breaks[0]]
    return [strategy_finding(rule.message, "", rule.places, given) for rule in broken]


def backend_findings(
    problem: Problem, strategy: Strategy, chunk_layers: tuple[int, ...] | None, given: Collection[str] | None
) -> list[Finding]:
    """Every rule of the problem's one back-end that a legal strategy breaks; None = its layers are not dealt yet."""
    return [
        strategy_finding(f"{each.rule}: {each.message}", "", (*each.fields, "--backend"), given)
        for each in BackEndRules(problem).broken(strategy, chunk_layers)
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
