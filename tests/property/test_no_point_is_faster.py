"""Nothing that a back-end can run is predicted to be faster than the plan that is proved fastest.

Points of the space are drawn at random, come from published runs, and from measured ones where the tables lie beside
the repository.  Each is estimated on its own, which shares no bound and no order of trying with the search.
"""

from __future__ import annotations

import random
from operator import itemgetter
from pathlib import Path

import pytest

from benchmarks.space_survey import SHARED
from planner.evidence.runs.mapped_run import MappedRun
from planner.evidence.runs.prediction import map_rows
from planner.evidence.runs.truth import read_truth
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.sample import random_plans
from planner.strategy.relief_layers import relief_layers
from planner.strategy.text import complete_strategy, parse_assignments
from profiles.catalogue import load_cluster
from profiles.validation import FindingsInvalid
from tests.membership import membership
from tests.published_runs import FULL, OTHERS, problem_of_run
from tests.sampling import drawn

FASTEST = SearchOptions(top_k=0, compare=False)
TOLERANCE = 1e-9
QUESTIONS = 12
"""Measured questions that are looked at, drawn by one seed."""


def _bound_s(problem: Problem) -> float:
    """What no plan of the problem's back-end is faster than, as the search proves it."""
    bound_s = find_plan(problem, FASTEST).lower_bound_s
    assert bound_s is not None
    return bound_s


RUN_BOTH = ("megatron", "megatron-bridge", "native", "torchtitan", "maxtext", "mindspeed", "unrestricted")
QUESTIONS_DRAWN = [
    *((backend, model) for backend in RUN_BOTH for model in ("llama-3.1-8b", "qwen3-30b-a3b")),
    *((backend, "llama-3.1-8b") for backend in ("deepspeed", "accelerate", "nemo-automodel", "nanotron")),
    ("megatron==23.04", "gpt-22b"),
    ("megatron-deepspeed", "gpt-22b"),
]


@pytest.mark.parametrize(("backend", "model"), drawn(QUESTIONS_DRAWN, 13, kind=itemgetter(0)))
def test_no_random_point_is_faster(backend: str, model: str) -> None:
    cluster = "ascend-910b-8" if backend == "mindspeed" else "dgx-h100"
    problem = Problem(
        model=load_model(model),
        cluster=load_cluster(cluster, 16),
        workload=Workload(global_batch_size=48, sequence_length=2048),
        constraints=Constraints(backends=(backend,)),
    )
    bound_s = _bound_s(problem)
    points = list(random_plans(problem, seed=5, tries=40))
    assert len(points) >= 5, "too few points were drawn to mean anything"
    for point in points:
        assert bound_s <= point.step_time_s * (1 + TOLERANCE), point.strategy


@pytest.mark.parametrize("name", drawn([*FULL, *OTHERS], 5))
def test_no_published_strategy_is_faster(name: str, tmp_path: Path) -> None:
    run = {**FULL, **OTHERS}[name]
    problem = problem_of_run(run, tmp_path)
    values = parse_assignments([run.strategy], "--strategy")
    strategy, _ = complete_strategy(values, run.devices, run.batch)
    ran = estimate(problem, strategy, None, values, relief_layers(values))
    assert membership(problem, ran.chosen()).inside
    # What is judged not to fit may be faster than any plan.
    if ran.status != "infeasible":
        assert _bound_s(problem) <= ran.step_time_s * (1 + TOLERANCE)


@pytest.mark.slow
def test_no_measured_strategy_is_faster() -> None:
    path = SHARED / "training_dev.csv"
    if not path.exists():
        pytest.skip("../shared/ground_truth is not here")
    runs, _ = map_rows(read_truth(path.read_text(encoding="utf-8"), str(path)))
    questions: dict[str, list[MappedRun]] = {}
    for run in runs:
        if run.flavour.backend and run.strategy.world_size > 8:
            key = f"{run.flavour.backend} {run.model.model_dump_json()} {run.workload} {run.strategy.world_size}"
            questions.setdefault(f"{key} {run.strategy.global_batch_size}", []).append(run)
    compared = 0
    # Of some questions no strategy is a point of the back-end's space: others take their place.
    for key in random.Random(20).sample(sorted(questions), 2 * QUESTIONS):
        compared += _compared(questions[key])
        if compared >= QUESTIONS:
            break
    assert compared >= QUESTIONS, "too few measured strategies were compared to mean anything"


def _compared(runs: list[MappedRun]) -> int:
    """Strategies of one question that fit and are not faster than its plan."""
    first = runs[0]
    problem = Problem(
        model=first.model,
        cluster=first.cluster,
        workload=first.workload.model_copy(update={"global_batch_size": first.strategy.global_batch_size}),
        constraints=Constraints(backends=(first.flavour.backend,)),
    )
    points = [run.strategy for run in runs if membership(problem, run.strategy).inside]
    estimates = [each for each in (_estimated(problem, run) for run in runs if run.strategy in points) if each]
    fitting = [each for each in estimates if each.status != "infeasible"]
    if fitting:
        bound_s = _bound_s(problem)
        for ran in fitting:
            assert bound_s <= ran.step_time_s * (1 + TOLERANCE), (first.row.id, ran.strategy)
    return len(fitting)


def _estimated(problem: Problem, run: MappedRun) -> Plan | None:
    """The estimate of a measured strategy; None where its back-end refuses how the layers were dealt."""
    try:
        return estimate(problem, run.strategy)
    except FindingsInvalid:
        return None
