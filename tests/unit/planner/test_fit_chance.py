"""The chance to fit: a distribution with its inverse, limits that search and recheck share, old documents as before."""

from __future__ import annotations

import itertools

import pytest

from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.predict.memory.fit_chance import (
    POOLED,
    MemoryRatio,
    chance_words,
    fits_probability,
    measured_ratios,
    memory_ratio,
    ratio_name,
    student_4,
    student_4_quantile,
    usable_bytes,
)
from planner.question.problem import USUAL_CHANCE, Constraints, Objective, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.recheck import recheck_plan
from profiles.catalogue import load_cluster
from solver.check import CheckFailed

RATIO = MemoryRatio(median=1.02, scale=0.03, exact=1, finished=0, out_of_memory=0)
# Table of Student's t with four degrees of freedom.
KNOWN = ((0.75, 0.7407), (0.95, 2.1318), (0.99, 3.7469), (0.995, 4.6041))


@pytest.mark.parametrize(("chance", "t"), KNOWN)
def test_the_distribution_is_that_of_the_tables(chance: float, t: float) -> None:
    assert student_4_quantile(chance) == pytest.approx(t, abs=1e-4)
    assert student_4(t) == pytest.approx(chance, abs=1e-5)
    assert student_4_quantile(1 - chance) == pytest.approx(-t, abs=1e-4)


def test_limit_and_chance_invert_each_other() -> None:
    for name, fits in itertools.product(measured_ratios().ratios, (0.9, 0.95, 0.99, 0.999)):
        limit = usable_bytes(80e9, Constraints(fits=fits), name)
        assert fits_probability(80e9, limit, name) == pytest.approx(fits, abs=1e-9)
    chances = [RATIO.chance(80 / peak) for peak in (40, 60, 75, 79, 81, 90)]
    assert chances == sorted(chances, reverse=True)


def test_what_is_asked_decides_the_limit() -> None:
    usual, sure = (usable_bytes(80e9, each, "megatron") for each in (Constraints(), Constraints(fits=0.99)))
    assert sure < usual < 80e9
    assert Constraints().fits == USUAL_CHANCE
    margin = Constraints(memory_margin_fraction=0.06)
    assert margin.fits is None
    assert usable_bytes(80e9, margin, "megatron") == 80e9 * (1 - 0.06)
    both = Constraints(memory_margin_fraction=0.3, fits=0.95)
    assert usable_bytes(80e9, both, "megatron") == 80e9 * (1 - 0.3)


def test_a_back_end_without_rows_is_judged_by_the_others() -> None:
    assert ratio_name("no-such") == POOLED
    assert ratio_name("megatron-bridge") == ratio_name("megatron") == "megatron"
    own = [ratio for name, ratio in measured_ratios().ratios.items() if name != POOLED]
    assert memory_ratio("no-such").scale >= max(each.scale for each in own)


def test_older_constraints_are_the_same_document() -> None:
    stored = {
        "schema_version": 2,
        "pins": {},
        "forbids": [],
        "backends": ["megatron"],
        "memory_margin_fraction": 0.06,
        "max_step_time_s": None,
        "min_tokens_per_s": None,
    }
    assert Constraints.model_validate(stored).model_dump(mode="json") == stored


def test_a_chance_is_never_told_as_certainty() -> None:
    assert chance_words(0.9999) == "over 99.9 %"
    assert chance_words(0.9731) == "97.3 %"


def _plan(**constraints: object) -> tuple[Problem, Plan]:
    problem = Problem(
        model=load_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-h100", 8),
        workload=Workload(global_batch_size=64, sequence_length=8192),
        constraints=Constraints.model_validate({"backends": ["megatron"], **constraints}),
        objective=Objective(),
    )
    return problem, find_plan(problem, SearchOptions())


def test_a_plan_has_the_chance_that_was_asked_and_is_held_to_it() -> None:
    asked, plan = _plan(fits=0.99)
    recheck_plan(plan, asked)
    memory_bytes = asked.cluster.pools[0].device.memory_bytes
    assert plan.fits_probability == pytest.approx(
        fits_probability(memory_bytes, plan.peak_memory_bytes, "megatron"), abs=1e-9
    )
    assert plan.fits_probability is not None
    assert plan.fits_probability >= 0.99
    assert all((other.fits_probability or 0) >= 0.99 for other in plan.alternatives)
    with pytest.raises(CheckFailed, match="fits_probability"):
        recheck_plan(plan.model_copy(update={"fits_probability": 0.5}), asked)
    # The same decisions under a chance that they have not.
    surer = asked.model_copy(update={"constraints": asked.constraints.model_copy(update={"fits": 0.9999999})})
    with pytest.raises(CheckFailed, match="bytes of"):
        recheck_plan(plan.model_copy(update={"problem": surer}), surer)


def test_a_plan_of_before_keeps_its_id() -> None:
    _, plan = _plan(memory_margin_fraction=0.06)
    before = plan.model_dump(mode="json", exclude={"fits_probability"})
    for row in before["alternatives"]:
        row.pop("fits_probability")
    again = Plan.model_validate(before)
    assert again.fits_probability is None
    assert again.model_dump(mode="json") == before
