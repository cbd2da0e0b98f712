"""Optimism: the predicted time of our own pick over the best measured time, for questions whose tuned runs are known.

A question is one model, workload and cluster under one back-end.  Runs of tuned tables answer it: someone looked for a
good configuration and measured it.  Our pick is what a search finds for the same question::

    optimism = predicted step time of our pick / best measured step time

Our pick is the plan that ``meshwright plan`` proposes: the recommended one of the back-end that was measured, or of
Megatron-LM where that one is not planned for.  Runs of one question that ask the same back-end are one question,
however they were run.  What no run of a source varies was not tuned there: where every one of them states the same
recompute, the pick has to do the same, and ``free`` is the optimism of a pick that need not (runs of 2021 and 2022
replay every layer; selective recompute was published later: Korthikanti et al. measure 0.77 for MT-NLG).

Between 0.9 and 1.02 the pick is believable: no slower than what was run, and no promise that nobody has reached.  Below
0.9 the report says what the pick does that the measured runs did not.  ``predicted`` is the same for the best measured
run itself, so that what the cost model gets wrong of that run is told apart from what the pick promises beyond it;
``as_planned`` is its strategy under the software of the pick.  The three factors of a low pick::

    optimism = predicted * (as_planned / predicted) * (optimism / as_planned)

are the cost model on that run, the other software and the other strategy; the least of them names the ``cause``.

The measure mixes two things that ``views`` tells apart: how well the best measured run itself is predicted (a pick that
copied it would have that optimism), and what the pick promises beyond it (both predicted: the cost model's error of the
run cancels).  ``untried`` names what the pick does and no run of its source ever did: no published time can say whether
that holds.  ``strategies``: how many different ones the runs of the question have; one alone was chosen by nobody's
measurement.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from planner.backends.registry import backends, software
from planner.evidence.accuracy.headline import is_tuned
from planner.evidence.runs.mapped_run import MappedRun
from planner.evidence.runs.prediction import Prediction, predict_runs
from planner.evidence.runs.sources import source_group
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Objective, Problem
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from profiles.errors import MeshwrightError

BELIEVABLE = (0.9, 1.02)
LEAST_DEVICES = 8
QUESTIONS_EACH = 12
"""Questions of one source at most: tables of many sizes would drown the others."""
SECONDS_EACH = 20.0
"""A search that takes longer answers with what it has."""
COMPARED = ("tp", "cp", "pp", "vpp", "ep", "etp", "dp_shard", "micro_batch_size", "zero_stage", "recompute", "schedule")
ROW_FIELDS = {"vpp": "vpp", "schedule": "vpp", "micro_batch_size": "mbs", "recompute": "recompute"}
"""Columns that sources often leave blank, by what is compared."""
NOT_STATED = " (not stated)"
MECHANISMS = ("zero_stage", "recompute", "schedule")
"""Of these each value is another code path."""
DEGREES = ("tp", "cp", "pp", "vpp", "ep", "etp")
"""Of these one alone is another code path: degree 1 is the absence of it."""
UNKNOWN = "?"
"""Among the tried values of a field that a run of the source leaves blank: it may have been any."""
USUAL_BACKEND = "megatron"
LLAMA = re.compile(r"llama-?[23]", re.IGNORECASE)
"""Names of models whose family, which a row does not state, is Llama's: back-ends that build by family take it."""


@dataclass(frozen=True, slots=True)
class Question:
    """Tuned runs of one question, best first."""

    runs: tuple[MappedRun, ...]
    held: str = ""
    """Recompute that every run of the source has; "" where it was varied or is not stated."""
    tried: Mapping[str, frozenset[object]] = field(default_factory=dict)
    """Values that runs of the source have, by field of a strategy."""

    @property
    def name(self) -> str:
        """Model, devices, length, batch and precision."""
        best = self.runs[0]
        row = best.row
        device = f"{best.strategy.world_size} {row.device}"
        return f"{row.model}, {device}, {row.sequence_length} tokens, batch {row.gbs}, {best.arithmetic}"

    def problem(self, *, free: bool = False) -> Problem:
        """The question that a search answers; ``free``: whatever the recompute of the source's runs."""
        pins: dict[str, int | str | bool] = {"recompute": self.held} if self.held and not free else {}
        best = self.runs[0]
        return Problem(
            model=_of_its_family(best.model, best.row.model),
            cluster=best.cluster,
            workload=best.workload.model_copy(update={"global_batch_size": best.strategy.global_batch_size}),
            constraints=Constraints(backends=(_backend(best.flavour.backend),), pins=pins),
            objective=Objective(prefer="recommended"),
        )


def _of_its_family(model: ModelSpec, name: str) -> ModelSpec:
    dense = all(kind.mlp is not None for kind in model.layer_kinds)
    named = model.family == "custom" and dense and LLAMA.match(name) is not None
    return model.model_copy(update={"family": "llama"}) if named else model


def _backend(named: str) -> str:
    """The back-end that is asked: the runs' own where it is known."""
    return named if named.partition("==")[0] in backends() else USUAL_BACKEND


@dataclass(frozen=True, slots=True)
class Optimism:
    """One question's answer; ``failure``: why there is no pick."""

    question: str
    source: str
    num_runs: int
    best_measured_s: float
    best_id: str
    predicted: float
    optimism: float | None
    differs: str
    failure: str = ""
    held: str = ""
    free: float | None = None
    as_planned: float | None = None
    cause: str = ""
    strategies: int = 1
    untried: str = ""


def tuned_questions(runs: Iterable[MappedRun], most_each: int = QUESTIONS_EACH) -> list[Question]:
    """Questions of tuned tables on a node or more; at most so many of a source, drawn by a hash of their names."""
    members: dict[tuple[object, ...], list[MappedRun]] = {}
    runs = list(runs)
    held, tried = _held(runs), _tried(runs)
    for run in runs:
        if not asked(run):
            continue
        # In which dtype gradients are reduced is the software's, not the question's.
        workload = run.workload.model_dump_json(exclude={"gradient_dtype"})
        key = (run.model.model_dump_json(), id(run.cluster), workload, run.arithmetic)
        members.setdefault((*key, _backend(run.flavour.backend), run.strategy.global_batch_size), []).append(run)
    questions = []
    for each in members.values():
        source = source_group(each[0].row.source)
        questions.append(Question(tuple(sorted(each, key=_seconds)), held[source], tried[source]))
    questions.sort(key=lambda each: hashlib.sha256(each.name.encode()).hexdigest())
    asked_of: Counter[str] = Counter()
    drawn = []
    for question in questions:
        source = source_group(question.runs[0].row.source)
        asked_of[source] += 1
        if asked_of[source] <= most_each:
            drawn.append(question)
    return sorted(drawn, key=lambda each: (source_group(each.runs[0].row.source), each.name))


def _seconds(run: MappedRun) -> tuple[float, str]:
    return run.row.measured_step_s or 0.0, run.row.id


def _held(runs: Iterable[MappedRun]) -> dict[str, str]:
    """The recompute policy that all runs of a source state, by source; "" where they differ or one states none."""
    policies: dict[str, set[str]] = {}
    for run in runs:
        stated = run.strategy.recompute if run.row.recompute or run.flavour.recompute else ""
        policies.setdefault(source_group(run.row.source), set()).add(stated)
    return {source: next(iter(found)) if len(found) == 1 else "" for source, found in policies.items()}


def _tried(runs: Iterable[MappedRun]) -> dict[str, dict[str, frozenset[object]]]:
    """Values of mechanisms and degrees that the runs of each source have; ``UNKNOWN`` where one leaves its blank."""
    found: dict[str, dict[str, set[object]]] = {}
    for run in runs:
        fields = found.setdefault(source_group(run.row.source), {})
        for name in (*MECHANISMS, *DEGREES):
            fields.setdefault(name, set()).add(UNKNOWN if _blank(run, name) else getattr(run.strategy, name))
    return {source: {name: frozenset(values) for name, values in fields.items()} for source, fields in found.items()}


def _blank(run: MappedRun, name: str) -> bool:
    return name in ROW_FIELDS and not getattr(run.row, ROW_FIELDS[name])


def untried(picked: Mapping[str, object], tried: Mapping[str, frozenset[object]]) -> list[str]:
    """What a strategy does that no run of the source did, of which the source states what every run did."""
    news = []
    for name in (*MECHANISMS, *DEGREES):
        value, known = picked.get(name), tried.get(name, frozenset())
        absent = name in DEGREES and value == 1
        same_path = name in DEGREES and known != {1}
        if value is None or absent or same_path or not known or value in known or UNKNOWN in known:
            continue
        news.append(f"{name} {value}")
    return news


def asked(run: MappedRun) -> bool:
    """Whether a run is a tuned one that a search can be asked about: all weights learn, in 16 or 8 bit."""
    return (
        is_tuned(source_group(run.row.source))
        and run.row.measured_step_s is not None
        and run.strategy.world_size >= LEAST_DEVICES
        and run.arithmetic in ("bf16", "fp16", "fp8")
        and not run.software.adapters
    )


def optimism_data(runs: Sequence[MappedRun], predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Every question's answer, and the part of them that is believable."""
    predicted_s = {each.row.id: each.step_time_s for each in predictions}
    found = [
        _answer(question, predicted_s) for question in tuned_questions(runs) if question.runs[0].row.id in predicted_s
    ]
    answered = [each.optimism for each in found if each.optimism is not None]
    free = [each.free for each in found if each.free is not None]
    low, high = BELIEVABLE
    return {
        "questions": [asdict(each) for each in found],
        "n": len(answered),
        "believable": sum(low <= each <= high for each in answered) / len(answered) if answered else None,
        "believable_free": sum(low <= each <= high for each in free) / len(free) if free else None,
        "below": sum(each < low for each in answered),
        "above": sum(each > high for each in answered),
        "median": sorted(answered)[len(answered) // 2] if answered else None,
    }


def views(questions: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Ratios behind the measure, by what they are of; the first is the measure itself (answered questions only)."""
    found = [each for each in questions if each["optimism"] is not None]

    def optimisms(of: Iterable[Mapping[str, Any]]) -> list[float]:
        return [each["optimism"] for each in of]

    return {
        "our pick, over the best measured": optimisms(found),
        "of them, runs of two strategies or more": optimisms(each for each in found if each.get("strategies", 1) > 1),
        "of them, the pick does nothing that is untried": optimisms(each for each in found if not each.get("untried")),
        "of them, the pick does what no run of its source did": optimisms(
            each for each in found if each.get("untried")
        ),
        "the best measured run itself, predicted over measured": [each["predicted"] for each in found],
        "our pick over that run, both predicted": [
            each["optimism"] / each["as_planned"] for each in found if each.get("as_planned")
        ],
    }


def _answer(question: Question, predicted_s: dict[str, float]) -> Optimism:
    best = question.runs[0]
    measured_s = best.row.measured_step_s or 1.0
    told: dict[str, Any] = {
        "question": question.name,
        "source": source_group(best.row.source),
        "num_runs": len(question.runs),
        "best_measured_s": measured_s,
        "best_id": best.row.id,
        "predicted": predicted_s[best.row.id] / measured_s,
        "held": question.held,
        "strategies": len({tuple(getattr(run.strategy, name) for name in COMPARED) for run in question.runs}),
    }
    plan = _pick(question.problem())
    free = _pick(question.problem(free=True)) if question.held else plan
    told["free"] = None if isinstance(free, str) else free.step_time_s / measured_s
    if isinstance(plan, str):
        return Optimism(**told, optimism=None, differs="", failure=plan)
    words = _differences(best, plan)
    optimism = plan.step_time_s / measured_s
    told["as_planned"] = _as_planned_s(best) / measured_s
    told["untried"] = ", ".join(untried(plan.strategy, question.tried))
    if optimism < BELIEVABLE[0]:
        told["cause"] = low_pick_cause(told["predicted"], told["as_planned"], optimism, words)
    return Optimism(**told, optimism=optimism, differs=", ".join(words) or "the same strategy")


def _differences(best: MappedRun, plan: Plan) -> list[str]:
    """What the pick does otherwise; a field that the source leaves blank is no known difference."""
    words = []
    for name in COMPARED:
        ran, picked = getattr(best.strategy, name), plan.strategy.get(name)
        if picked not in (None, ran):
            words.append(f"{name} {picked}{NOT_STATED}" if _blank(best, name) else f"{name} {picked} not {ran}")
    return words


def _as_planned_s(best: MappedRun) -> float:
    """The run's own strategy under the physics of the pick's back-end."""
    traits = software(_backend(best.flavour.backend)).release.physics
    (prediction,), _ = predict_runs([replace(best, flavour=replace(best.flavour, traits=traits), traits=traits)])
    return prediction.step_time_s


def low_pick_cause(predicted: float, as_planned: float, optimism: float, words: Sequence[str]) -> str:
    """Which of the three factors of a low pick is the least."""
    factors = {
        "cost model": predicted,
        "software": as_planned / predicted,
        "strategy": optimism / as_planned,
    }
    least = min(factors, key=lambda name: factors[name])
    return "not stated" if least == "strategy" and any(word.endswith(NOT_STATED) for word in words) else least


def _pick(problem: Problem) -> Plan | str:
    """The plan that would be proposed, or why there is none."""
    try:
        return find_plan(problem, SearchOptions(top_k=0, compare=False, time_limit_s=SECONDS_EACH))
    except MeshwrightError as error:
        return error.what
