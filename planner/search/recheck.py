"""Checks that a plan is what it claims to be: recomputed from its own decisions, trusting no search.

A plan names a strategy, the layers of every chunk and the layers that each stage recomputes or offloads.  From these
and the problem alone follow legality, memory, step time and every other number; all of them must come out again.
What cannot be recomputed without a search is whether the bound is one: it is only held against the plan itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from planner.backends.asked import asked_software, problem_hardware, problem_of, software_of
from planner.plan.plan import Plan
from planner.plan.relief import of_stages, relieves_every_layer, relieves_first
from planner.predict.candidate import Candidate, Split
from planner.predict.cost.hardware import Hardware
from planner.question.problem import Problem
from planner.search.assemble_plan import assemble_plan
from planner.search.choices import checked_pins
from planner.search.device_counts import cut_to, slowest_allowed_s
from planner.search.estimate import layer_findings, strategy_findings
from planner.search.evaluate import evaluate_split
from planner.search.row_context import strategy_context
from planner.search.split_limits import memory_limit_bytes, split_rules
from planner.strategy.fields import OF_RELIEF
from planner.strategy.relief_layers import relief_layers
from solver.check import CheckFailed

TOLERANCE = 1e-9
"""Largest relative difference of a number; sums over many strategies at once may be rounded differently."""
OF_THE_SEARCH = frozenset(
    {"status", "lower_bound_s", "gap", "search", "alternatives", "backends", "unrestricted", "fastest", "origins"}
)
"""Fields that say what the search did; everything else follows from the problem and the decisions."""


def recheck_plan(plan: Plan, asked: Problem) -> None:
    """Recompute ``plan`` as an answer to ``asked``.  Raises CheckFailed with everything that does not hold."""
    findings = list(_question(plan, asked))
    if not findings:
        try:
            findings = list(_decisions(plan))
        except Exception as error:
            # Decisions that the cost model cannot even read are a finding about the plan, whatever it stumbled over.
            findings = [f"its decisions cannot be evaluated: {error}"]
    if findings:
        raise CheckFailed("; ".join(findings))


def _question(plan: Plan, asked: Problem) -> Iterator[str]:
    """Is it the question that was asked?  Fewer devices are no answer where step time is minimised."""
    answered = plan.problem
    if software_of(plan) not in asked_software(asked):
        yield f"it is a plan of {plan.backend}, which was not asked"
    if answered == asked:
        return
    count = answered.cluster.num_devices
    if asked.objective.minimize == "step_time" or count > asked.cluster.num_devices:
        yield "it answers another problem"
    elif answered != cut_to(asked, count):
        yield f"it answers another problem than the one asked, cut to {count} devices"


def _decisions(plan: Plan) -> Iterator[str]:
    problem = problem_of(plan)
    hardware = problem_hardware(problem)
    strategy = plan.chosen()
    if strategy.world_size != problem.cluster.num_devices:
        yield f"its degrees make {strategy.world_size} devices of {problem.cluster.num_devices}"
        return
    split = _split(plan)
    broken = strategy_findings(problem, strategy, split.chunk_layers)
    yield from (each.what for each in broken)
    if broken:
        # Degrees that break a rule have no costs to compare.
        return
    yield from (each.what for each in layer_findings(problem, strategy, split.chunk_layers))
    asked = relief_layers(problem.constraints.pins)
    for name, value in checked_pins(problem.constraints).items():
        unneeded = name in OF_RELIEF and asked == "where_needed" and not any(split.relieved)
        if getattr(strategy, name) != value and not unneeded:
            yield f"{name} is {getattr(strategy, name)}, pinned to {value}"
    if asked == "every" and not relieves_every_layer(plan):
        yield "some of its layers are not relieved, and the pins ask for every layer"
    if isinstance(asked, int) and not relieves_first(plan, asked):
        yield f"it does not relieve exactly the first {asked} layers of each chunk, which the pins ask for"
    candidate = evaluate_split(strategy_context(problem, hardware, strategy), split)
    yield from _room(problem, hardware, candidate)
    if candidate.step_time_s > slowest_allowed_s(problem) * (1 + TOLERANCE):
        yield f"a step takes {candidate.step_time_s:.6g} s, {slowest_allowed_s(problem):.6g} s are allowed"
    again = assemble_plan(
        plan.problem,
        hardware,
        candidate,
        software=software_of(plan),
        status=plan.status,
        lower_bound_s=plan.lower_bound_s,
        report=plan.search,
    )
    claimed, computed = (made.model_dump(mode="json", exclude=set(OF_THE_SEARCH)) for made in (plan, again))
    yield from _differences(claimed, computed, "")
    yield from _bound(plan)
    yield from _fastest(plan)
    yield from _table(plan)


def _split(plan: Plan) -> Split:
    chunks = sorted((chunk for stage in plan.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    return Split(
        chunk_layers=tuple(chunk.num_layers for chunk in chunks),
        relieved=of_stages(plan),
    )


def _room(problem: Problem, hardware: Hardware, candidate: Candidate) -> Iterator[str]:
    limit, rules = memory_limit_bytes(problem, hardware), split_rules(problem, hardware)
    for index, stage in enumerate(candidate.stages):
        if stage.total_bytes > limit * (1 + TOLERANCE):
            yield f"stage {index} needs {stage.total_bytes:.0f} bytes of {limit:.0f}"
        if stage.host_bytes > rules.host_limit_bytes * (1 + TOLERANCE):
            yield f"stage {index} needs {stage.host_bytes:.0f} bytes of host memory of {rules.host_limit_bytes:.0f}"


def _bound(plan: Plan) -> Iterator[str]:
    bound, step_s = plan.lower_bound_s, plan.step_time_s
    if bound is None or plan.gap is None:
        yield "it has no lower bound, and a search gives one"
        return
    if not 0 <= bound <= step_s * (1 + TOLERANCE):
        yield f"its lower bound of {bound} s is not one of {step_s} s"
    gap = max(0.0, 1.0 - bound / step_s)
    if not math.isclose(gap, plan.gap, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        yield f"gap is {plan.gap}, its bound gives {gap}"
    if plan.status == "infeasible" or (plan.status == "optimal" and gap > TOLERANCE):
        yield f"it is called {plan.status} with a gap of {gap}"


def _fastest(plan: Plan) -> Iterator[str]:
    """Does the fastest plan beside it agree with the plan, and is the plan within the band?"""
    other = plan.fastest
    prefer = plan.problem.objective.prefer
    if (other is not None) != (prefer == "recommended"):
        yield f"the {prefer} plan is asked, and the fastest one is {'' if other else 'not '}beside it"
    if other is None:
        return
    slower_by = plan.step_time_s / other.step_time_s - 1
    if not math.isclose(slower_by, other.slower_by, abs_tol=TOLERANCE):
        yield f"it is slower than the fastest by {other.slower_by}, its step time gives {slower_by}"
    if not -TOLERANCE <= slower_by <= other.band + TOLERANCE:
        yield f"it is slower than the fastest by {slower_by}, which is not within the band of {other.band}"
    same = plan.strategy == other.strategy and abs(slower_by) <= TOLERANCE
    if other.is_recommended and not same:
        yield "it is called the fastest plan and differs from it"
    if (plan.lower_bound_s or 0.0) > other.step_time_s * (1 + TOLERANCE):
        yield f"its lower bound of {plan.lower_bound_s} s is above the fastest plan of {other.step_time_s} s"


def _table(plan: Plan) -> Iterator[str]:
    """Does the table of back-ends agree with the plan and with itself?"""
    rows = [(row.step_time_s, row) for row in plan.backends if row.step_time_s is not None]
    fastest_s = plan.step_time_s if plan.fastest is None else plan.fastest.step_time_s
    if plan.backends and (not rows or (rows[0][1].backend, rows[0][1].release) != (plan.backend, plan.release)):
        yield "its own back-end is not the first of the table of back-ends"
    for step_s, row in rows:
        slower_by = step_s / fastest_s - 1
        if slower_by < -TOLERANCE or not math.isclose(slower_by, row.slower_by or 0.0, abs_tol=TOLERANCE):
            yield f"{row.backend} is slower by {row.slower_by}, its step time gives {slower_by}"
        bound, gap = row.lower_bound_s, row.gap
        if bound is not None and not (0 <= bound <= step_s * (1 + TOLERANCE)):
            yield f"the lower bound of {row.backend}, {bound} s, is not one of {step_s} s"
        elif bound is not None and not math.isclose(gap or 0.0, max(0.0, 1 - bound / step_s), abs_tol=TOLERANCE):
            yield f"the gap of {row.backend} is {gap}, its bound gives {max(0.0, 1 - bound / step_s)}"
    free = plan.unrestricted
    if free is not None and not (
        free.step_time_s < fastest_s
        and math.isclose(free.faster_by, 1 - free.step_time_s / fastest_s, abs_tol=TOLERANCE)
    ):
        yield f"the unrestricted plan of {free.step_time_s} s is no faster one by {free.faster_by}"


def _differences(claimed: Any, computed: Any, where: str) -> Iterator[str]:
    """Every place in which two JSON values differ by more than rounding."""
    if isinstance(claimed, dict) and isinstance(computed, dict) and claimed.keys() == computed.keys():
        for name in claimed:
            yield from _differences(claimed[name], computed[name], f"{where}/{name}")
    elif isinstance(claimed, list) and isinstance(computed, list) and len(claimed) == len(computed):
        for index, (left, right) in enumerate(zip(claimed, computed, strict=True)):
            yield from _differences(left, right, f"{where}/{index}")
    elif isinstance(claimed, float | int) and isinstance(computed, float | int):
        # One byte is rounding too.  Written so that a NaN differs.
        slack = 1.0 if isinstance(claimed, int) and isinstance(computed, int) else TOLERANCE
        if not math.isclose(claimed, computed, rel_tol=TOLERANCE, abs_tol=slack):
            yield f"{where} is {claimed}, recomputed {computed}"
    elif claimed != computed:
        yield f"{where} is {claimed!r}, recomputed {computed!r}"
