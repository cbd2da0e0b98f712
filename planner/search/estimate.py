"""The step time of one given strategy, and whether it fits; no search over degrees.

What is given is held: the fields, the layers of each chunk, the layers that recompute or offload.  What is left open,
the dealing of the layers or the relief where it is needed, is decided optimally.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from planner.backends.asked import asked_software, inside, problem_hardware, the_software, why_not_these_devices
from planner.backends.backend import Software
from planner.backends.emission.emission import Finding as Broken
from planner.backends.rules.legality import broken_rules, model_shape
from planner.backends.rules.rule import about_the_model
from planner.errors import NoFeasiblePlan
from planner.plan.plan import BackEndAnswer, Origins, Plan, SearchReport
from planner.plan.relief import of_stages
from planner.predict.candidate import Candidate, Split
from planner.predict.cost.hardware import Hardware
from planner.question.problem import Problem
from planner.search.assemble_plan import assemble_plan
from planner.search.backend_rules import BackEndRules
from planner.search.evaluate import evaluate_split
from planner.search.family_split import given_split
from planner.search.line_split import LeftOpen
from planner.search.row_context import RowContext, strategy_context, strategy_row, without_relief
from planner.search.spelled import as_spelled
from planner.search.split import best_split
from planner.search.split_limits import split_rules
from planner.search.split_terms import SLACK, SplitRules
from planner.search.unsaid import with_unsaid
from planner.strategy.findings import STRATEGY_FLAG, strategy_finding
from planner.strategy.relief_layers import ReliefLayers
from planner.strategy.strategy import Strategy
from profiles.validation import Finding, FindingsInvalid, require

LAYERS_FLAG = "--layers"
DEALT = "one strategy was given; its layers and relief are dealt optimally"


def estimate(
    problem: Problem,
    strategy: Strategy,
    chunk_layers: tuple[int, ...] | None = None,
    given: Collection[str] | None = None,
    relief: ReliefLayers = "every",
    *,
    launched: bool = False,
) -> Plan:
    """Predict one strategy, with its layers dealt optimally or as ``chunk_layers`` says.

    Where the ways to deal them are too many, ``search.proof`` of the plan says how much faster another one could be.

    ``launched``: the strategy is that of a run that somebody starts, so that its back-end builds the model: a rule that
    its files have no word for the model is told in the plan and refuses nothing.
    ``relief``: the layers that use the strategy's recompute or offload; a number for each stage needs ``chunk_layers``.
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
                made.append(_estimate_in(problem, wanted, strategy, chunk_layers, given, relief, launched=launched))
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
    relief: ReliefLayers,
    *,
    launched: bool,
) -> Plan:
    own = inside(problem, wanted)
    hardware = problem_hardware(own)
    own_rules = BackEndRules(own)
    strategy = own_rules.spelled(with_unsaid(strategy, given, own_rules), chunk_layers)
    _check(own, strategy, chunk_layers, given, launched=launched)
    require(_relief_findings(own, strategy, relief, given), STRATEGY_FLAG)
    context = strategy_context(own, hardware, strategy)
    rules, left = split_rules(own, hardware, relief), LeftOpen()
    if isinstance(relief, tuple):
        candidate, fits = _held(context, rules, chunk_layers, relief)
    else:
        found = _dealt(context, rules, chunk_layers, left)
        nowhere = "none" in wanted.release.space.columns.recompute
        if relief == "where_needed" and nowhere and (rules.uniform or rules.even):
            found = _faster(found, _dealt(without_relief(context), rules, chunk_layers, left))
        fits = found is not None
        candidate = found or _nearest(context, rules, chunk_layers, given)
    candidate = as_spelled(own, hardware, candidate)
    proof = _proof(chunk_layers, strategy, relief) + _open(left, candidate)
    plan = _plan(problem, wanted, hardware, candidate, fits, proof)
    return plan.model_copy(update={"origins": _origins(plan, strategy, given, chunk_layers, relief)})


def estimate_if_it_fits(problem: Problem, strategy: Strategy) -> Plan | None:
    """Predict one strategy in the one back-end of a problem; None, and sooner, where it does not fit.

    Raises as ``estimate`` does.
    """
    wanted, hardware = the_software(problem), problem_hardware(problem)
    _check(problem, strategy, None, None)
    context = strategy_context(problem, hardware, strategy)
    left = LeftOpen()
    candidate = best_split(context, split_rules(problem, hardware), left=left)
    if candidate is None:
        return None
    proof = DEALT + _open(left, candidate)
    return _plan(problem, wanted, hardware, as_spelled(problem, hardware, candidate), fits=True, proof=proof)


def _plan(problem: Problem, wanted: Software, hardware: Hardware, candidate: Candidate, fits: bool, proof: str) -> Plan:
    report = SearchReport(
        enumerated=1,
        pruned={},
        bounded=0,
        evaluated=1,
        proof=proof,
    )
    return assemble_plan(
        problem,
        hardware,
        candidate,
        software=wanted,
        status="feasible" if fits else "infeasible",
        lower_bound_s=None,
        report=report,
    )


def _proof(chunk_layers: tuple[int, ...] | None, strategy: Strategy, relief: ReliefLayers) -> str:
    relieves = strategy.recompute != "none" or strategy.activation_offload
    if relieves and relief == "where_needed":
        return DEALT if chunk_layers is None else "given; as few layers are relieved as memory demands"
    return "given" if chunk_layers is not None else "one strategy was given; its layers are dealt optimally"


def _origins(
    plan: Plan,
    asked: Strategy,
    given: Collection[str] | None,
    chunk_layers: tuple[int, ...] | None,
    relief: ReliefLayers,
) -> Origins | None:
    """Which decisions were given, filled in and chosen; None where the caller does not say what it gave."""
    if given is None:
        return None
    words = dict(given) if isinstance(given, Mapping) else {}
    fields = {name: _word(value) for name, value in plan.strategy.items()}
    held = {name: _word(words.get(name, fields[name])) for name in fields if name in given}
    default = {name: value for name, value in fields.items() if name not in held}
    chosen: dict[str, int | str | bool] = {}
    chunks = sorted((chunk for stage in plan.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    (chosen if chunk_layers is None else held)["layers"] = _list(chunk.num_layers for chunk in chunks)
    # A back-end may spell relief that no layer needs as none.
    if asked.recompute != "none" or asked.activation_offload:
        (chosen if relief == "where_needed" else held)["relieved_layers"] = _list(of_stages(plan))
    return Origins(given=held, default=default, chosen=chosen)


def _word(value: Any) -> int | str | bool:
    return "+".join(value) if isinstance(value, list | tuple) else value


def _list(numbers: Iterable[int]) -> str:
    return ",".join(str(number) for number in numbers)


def _check(
    problem: Problem,
    strategy: Strategy,
    chunk_layers: tuple[int, ...] | None,
    given: Collection[str] | None,
    *,
    launched: bool = False,
) -> None:
    require(legality_findings(problem, strategy, given), STRATEGY_FLAG)
    # Of a legal strategy only: how many chunks there must be, its degrees say.
    require(layer_findings(problem, strategy, chunk_layers), LAYERS_FLAG)
    findings = backend_findings(problem, strategy, None, given, launched=launched)
    broken = [] if chunk_layers is None else _broken(problem, strategy, chunk_layers, launched=launched)
    if chunk_layers is not None:
        # What the layers as they are dealt do not break is not broken.
        still = tuple(f"{each.rule}:" for each in broken)
        findings = [each for each in findings if each.what.startswith(still)] if still else []
    require(findings, STRATEGY_FLAG)
    if chunk_layers is not None:
        # What is broken only now is broken by the dealing, whatever fields its rule compares it with.
        hint = "deal the layers otherwise, or leave it to the planner"
        wrong = [Finding("", f"{each.rule}: {each.message}", hint, ("--backend",)) for each in broken]
        require(wrong, LAYERS_FLAG)


def _relief_findings(
    problem: Problem, strategy: Strategy, relief: ReliefLayers, given: Collection[str] | None
) -> list[Finding]:
    """What is wrong with a number of layers to relieve."""
    software = the_software(problem)
    if (
        not isinstance(relief, int)
        or strategy.recompute != "full"
        or not software.release.space.columns.whole_recompute
    ):
        return []
    wrong = f"{software.name} recomputes every layer or none, not the first {relief} of each chunk"
    return [strategy_finding(wrong, "write recompute=full", ("recompute",), given)]


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
    columns, devices = the_software(problem).release.space.columns, problem.cluster.num_devices
    shape = model_shape(problem.model, problem.workload, devices, empty_ends=columns.empty_ends)
    broken = [rule for rule, breaks in broken_rules(strategy_row(strategy)[0], shape) if breaks[0]]
    return [strategy_finding(rule.message, "", rule.places, given) for rule in broken]


def backend_findings(
    problem: Problem,
    strategy: Strategy,
    chunk_layers: tuple[int, ...] | None,
    given: Collection[str] | None,
    *,
    launched: bool = False,
) -> list[Finding]:
    """Every rule of the problem's one back-end that a legal strategy breaks; None = its layers are not dealt yet."""
    return [
        strategy_finding(f"{each.rule}: {each.message}", "", (*each.fields, "--backend"), given)
        for each in _broken(problem, strategy, chunk_layers, launched=launched)
    ]


def _broken(
    problem: Problem, strategy: Strategy, chunk_layers: tuple[int, ...] | None, *, launched: bool
) -> list[Broken]:
    broken = BackEndRules(problem).broken(strategy, chunk_layers)
    return [each for each in broken if not (launched and about_the_model(each.rule))]


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


def _held(
    context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...] | None, relieved: tuple[int, ...]
) -> tuple[Candidate, bool]:
    """Given layers with a given relief, and whether they fit."""
    stages = context.strategy.pp
    if chunk_layers is None or len(relieved) != stages:
        wrong = f"relieved layers are given for {len(relieved)} stages, with the layers of each chunk for all {stages}"
        raise FindingsInvalid([Finding("", wrong, "give one number for each stage, and the layers")], LAYERS_FLAG)
    candidate = evaluate_split(context, Split(chunk_layers=chunk_layers, relieved=relieved))
    tolerance = SLACK * context.costs.hardware.memory_bytes
    fits = all(
        stage.total_bytes <= rules.limit_bytes + tolerance and stage.host_bytes <= rules.host_limit_bytes
        for stage in candidate.stages
    )
    return candidate, fits


def _dealt(
    context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...] | None, left: LeftOpen
) -> Candidate | None:
    return _given(context, rules, chunk_layers) if chunk_layers else best_split(context, rules, left=left)


def _open(left: LeftOpen, candidate: Candidate) -> str:
    """What the proof of a dealing leaves open; nothing where every dealing was looked at."""
    if left.bound_s >= candidate.step_time_s:
        return ""
    return f", but for {1.0 - left.bound_s / candidate.step_time_s:.1%}: some dealings were too many to simulate"


def _faster(found: Candidate | None, bare: Candidate | None) -> Candidate | None:
    """A back-end with one setting for all layers relieves every layer, or none where none has to be."""
    if found is None or bare is None:
        return found or bare
    return bare if bare.step_time_s < found.step_time_s else found


def _given(context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...]) -> Candidate | None:
    """The given dealing with the relief that the rules ask for, or the least that fits."""
    split = given_split(context, rules, chunk_layers)
    return None if split is None else evaluate_split(context, split)


def _nearest(
    context: RowContext, rules: SplitRules, chunk_layers: tuple[int, ...] | None, given: Collection[str] | None
) -> Candidate:
    """What a strategy that does not fit would look like with everything relieved that may be."""
    if chunk_layers is None:
        free = replace(rules, limit_bytes=float(np.finfo(np.float64).max) / 4, host_limit_bytes=float("inf"))
        found = best_split(context, free)
        if found is None:
            wrong = "the layers cannot be dealt to so many stages"
            raise FindingsInvalid([strategy_finding(wrong, "lower pp or vpp", ("pp", "vpp"), given)], STRATEGY_FLAG)
        chunk_layers = found.split.chunk_layers
    most = max(chunk_layers) if rules.first is None else rules.first
    return evaluate_split(context, Split(chunk_layers=chunk_layers, relieved=(most,) * context.strategy.pp))
