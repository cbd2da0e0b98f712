"""May bounds be built from the closed forms?  Monotone in every time, never below m times the slowest stage."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from planner.schedule.closed_form import pipeline_makespan_s
from planner.schedule.orders import order_findings
from planner.strategy import GROUPED_SCHEDULES, LOOPED_SCHEDULES, V_SCHEDULES, ScheduleName


@dataclass(frozen=True)
class Question:
    """Arguments of ``pipeline_makespan_s``, in order."""

    schedule: str
    num_microbatches: int
    num_stages: int
    vpp: int
    group: int
    sum_stage_s: float
    max_stage_s: float
    sum_weight_gradient_s: float
    hop_s: float

    def makespan_s(self) -> float:
        """The formula's answer."""
        return float(pipeline_makespan_s(*astuple(self)))


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Legal sizes; stage times with p*max >= sum >= max, weight gradients at most half of a stage, any hop."""
    schedule = draw(st.sampled_from(get_args(ScheduleName)))
    v = 2 if schedule in V_SCHEDULES else draw(st.integers(2, 6)) if schedule in LOOPED_SCHEDULES else 1
    p = draw(st.integers(2 if schedule in LOOPED_SCHEDULES else 1, 24))
    g = draw(st.integers(p, 3 * p)) if schedule in GROUPED_SCHEDULES else 0
    m = draw(st.integers(1, 8 * p))
    if order_findings(schedule, p, v, m, g):
        m, g = 2 * p, (p if g else 0)
    longest = draw(st.floats(1e-4, 10))
    total = longest * draw(st.floats(1, p)) if p > 1 else longest
    weight = total * draw(st.floats(0, 0.5))
    return Question(schedule, m, p, v, g, total, longest, weight, longest * draw(st.floats(0, 1.5)))


GROWTH = st.floats(1, 3)
TOLERANCE = 1 - 1e-12


@given(questions())
def test_never_below_the_slowest_stage(question: Question) -> None:
    assert question.makespan_s() >= question.num_microbatches * question.max_stage_s * TOLERANCE


@given(questions(), GROWTH)
def test_more_total_work_is_never_faster(question: Question, factor: float) -> None:
    slower = replace(question, sum_stage_s=question.sum_stage_s * factor)
    assert slower.makespan_s() >= question.makespan_s() * TOLERANCE


@given(questions(), GROWTH)
def test_a_slower_slowest_stage_is_never_faster(question: Question, factor: float) -> None:
    slower = replace(question, max_stage_s=question.max_stage_s * factor)
    assert slower.makespan_s() >= question.makespan_s() * TOLERANCE


@given(questions(), GROWTH)
def test_slower_hops_are_never_faster(question: Question, factor: float) -> None:
    slower = replace(question, hop_s=question.hop_s * factor + 1e-6)
    assert slower.makespan_s() >= question.makespan_s() * TOLERANCE


@given(questions(), GROWTH)
def test_more_weight_gradient_in_the_same_stage_time_is_never_slower(question: Question, factor: float) -> None:
    movable = replace(question, sum_weight_gradient_s=question.sum_weight_gradient_s * factor)
    assert movable.makespan_s() <= question.makespan_s() / TOLERANCE


@given(questions(), GROWTH, GROWTH, GROWTH, GROWTH)
def test_a_bound_from_partial_sums_is_admissible(
    question: Question, total: float, longest: float, hop: float, weight: float
) -> None:
    """Times from below, weight gradients from above: never above the formula with the full values."""
    bound = replace(
        question,
        sum_stage_s=question.sum_stage_s / total,
        max_stage_s=question.max_stage_s / longest,
        hop_s=question.hop_s / hop,
        sum_weight_gradient_s=question.sum_weight_gradient_s * weight,
    )
    assert bound.makespan_s() <= question.makespan_s() / TOLERANCE


@given(questions(), GROWTH)
def test_scaling_every_time_scales_the_step(question: Question, factor: float) -> None:
    scaled = Question(*astuple(question)[:5], *(value * factor for value in astuple(question)[5:]))
    assert abs(scaled.makespan_s() - factor * question.makespan_s()) <= 1e-9 * scaled.makespan_s()
