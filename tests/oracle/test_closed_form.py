"""Are the closed forms exact where they say so?  Equal stages, every schedule, with and without hops."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from planner.errors import DocumentInvalid
from planner.schedule.closed_form import pipeline_makespan_s
from planner.schedule.dependencies import cached_graph
from planner.schedule.orders import order_findings
from planner.schedule.simulate import simulate
from planner.strategy import GROUPED_SCHEDULES, ScheduleName

SCHEDULES: list[tuple[ScheduleName, tuple[int, ...]]] = [
    ("gpipe", (1,)),
    ("1f1b", (1,)),
    ("interleaved", (2, 3, 4)),
    ("zb_h1", (1,)),
    ("zbv", (2,)),
    ("dualpipev", (2,)),
    ("looped_bfs", (2, 3, 4)),
    ("interleaved_zb", (2, 3, 4)),
]


def sizes(schedule: ScheduleName, vpps: tuple[int, ...]) -> Iterator[tuple[int, int, int, int]]:
    """(p, v, m, g): every m up to 3p and some more; groups up to 3p."""
    for p in (1, 2, 3, 4, 7):
        for v in vpps:
            for m in (*range(1, 3 * p + 1), 5 * p, 6 * p + 1):
                for g in (p, p + 1, 2 * p, 3 * p) if schedule in GROUPED_SCHEDULES else (0,):
                    if not order_findings(schedule, p, v, m, g):
                        yield p, v, m, g


def exact_hop_limit_s(schedule: ScheduleName, p: int, forward_s: float, gradient_s: float, weight_s: float) -> float:
    """Longest hop for which the module docstring claims exactness (chunk durations given)."""
    match schedule:
        case "gpipe" | "1f1b":
            return 3 * forward_s
        case "interleaved" | "looped_bfs":
            return min(forward_s, (forward_s + gradient_s + weight_s) / 3) / p
        case "interleaved_zb":
            return min(weight_s / 2, forward_s / p, (forward_s + gradient_s + weight_s) / 3 / p)
        case "zb_h1" | "zbv":
            return weight_s / 2
        case "dualpipev":
            return weight_s


@pytest.mark.parametrize(("schedule", "vpps"), SCHEDULES)
@pytest.mark.parametrize("with_hops", [False, True])
def test_exact_for_equal_stages(schedule: ScheduleName, vpps: tuple[int, ...], with_hops: bool) -> None:
    draw = random.Random(20241)
    checked = 0
    for p, v, m, g in sizes(schedule, vpps):
        forward = draw.uniform(0.5, 2)
        gradient, weight = forward * draw.uniform(1, 2.5), forward * draw.uniform(0.2, 1)
        hop = draw.uniform(0, exact_hop_limit_s(schedule, p, forward, gradient, weight)) if with_hops else 0.0
        ran = simulate(cached_graph(schedule, p, v, m, g), forward, gradient + weight, weight, send_s=hop)
        stage = v * (forward + gradient + weight)
        formula = pipeline_makespan_s(
            schedule, m, p, v, g, p * stage, stage, p * v * weight, hop, sum_forward_s=p * v * forward
        )
        assert float(formula) == pytest.approx(ran.makespan_s, rel=1e-12), (p, v, m, g)
        checked += 1
    assert checked > 20


def test_exact_for_a_backward_pass_that_is_not_split() -> None:
    """DualPipeV as DeepSpeed runs it (0.19.8, runtime/pipe/schedule.py): weight gradients stay inside the pass."""
    for p, v, m, g in sizes("dualpipev", (2,)):
        ran = simulate(cached_graph("dualpipev", p, v, m, g), 1.0, 2.0, 0.0)
        formula = pipeline_makespan_s("dualpipev", m, p, v, g, p * 6.0, 6.0, 0.0, 0.0)
        assert float(formula) == pytest.approx(ran.makespan_s, rel=1e-12), (p, m)
        split = simulate(cached_graph("dualpipev", p, v, m, g), 1.0, 2.0, 1.0)
        assert split.makespan_s < ran.makespan_s or p == 1


def test_textbook_formulas() -> None:
    """The formulas as the papers print them: F = 1, B = 2, W = 1 a device, p = 4, m = 8."""
    p, m, f, b, w = 4, 8, 1.0, 2.0, 1.0
    equal = (p * (f + b), f + b, p * w, 0.0)
    assert pipeline_makespan_s("gpipe", m, p, 1, 0, *equal) == (m + p - 1) * (f + b)
    assert pipeline_makespan_s("1f1b", m, p, 1, 0, *equal) == (m + p - 1) * (f + b)
    assert pipeline_makespan_s("interleaved", m, p, 2, 0, *equal) == m * (f + b) + (p - 1) * (f + b) / 2
    assert pipeline_makespan_s("zb_h1", m, p, 1, 0, *equal) == m * (f + b) + (p - 1) * (f + (b - w) - w)


def test_1f1b_hop_exposure() -> None:
    """2c [m(p-1)/p + p - 2] when p divides m."""
    for p, m, c in ((2, 8, 0.25), (4, 12, 0.1), (8, 64, 0.5)):
        extra = float(pipeline_makespan_s("1f1b", m, p, 1, 0, 3.0 * p, 3.0, 1.0 * p, c)) - (m + p - 1) * 3.0
        assert extra == pytest.approx(2 * c * (m * (p - 1) / p + p - 2))
        ran = simulate(cached_graph("1f1b", p, 1, m), 1.0, 2.0, 1.0, send_s=c).makespan_s
        assert extra == pytest.approx(ran - (m + p - 1) * 3.0)


def test_zb_h1_bubble_is_a_third_of_1f1b() -> None:
    """arXiv 2401.10241: with F = I = W the bubble is (p-1)(F+I-W), a third of 1F1B's (p-1)(F+B)."""
    for p, m in ((2, 4), (4, 8), (8, 24), (16, 32)):
        split = simulate(cached_graph("zb_h1", p, 1, m), 1.0, 2.0, 1.0)
        plain = simulate(cached_graph("1f1b", p, 1, m), 1.0, 2.0, 1.0)
        assert split.bubble_s == pytest.approx(np.full(p, (p - 1) * 1.0))
        assert plain.bubble_s == pytest.approx(np.full(p, (p - 1) * 3.0))


@pytest.mark.parametrize(
    ("forward", "gradient", "weight"), [(1.0, 1.0, 1.0), (1.0, 1.2, 0.7), (2.0, 3.0, 1.9), (1.5, 1.5, 0.0)]
)
def test_zb_h1_paper_formula(forward: float, gradient: float, weight: float) -> None:
    """(p-1)(F+I-W) of idle time while W <= F, I (arXiv 2401.10241, table 2)."""
    for p, m in ((3, 9), (6, 12)):
        ran = simulate(cached_graph("zb_h1", p, 1, m), forward, gradient + weight, weight)
        bubble = ran.makespan_s - m * (forward + gradient + weight)
        assert bubble == pytest.approx((p - 1) * (forward + gradient - weight))


def test_arrays_and_scalars_agree() -> None:
    p = np.array([2, 4, 8])
    total, longest = np.array([6.0, 13.0, 25.0]), np.array([3.1, 3.5, 3.2])
    for schedule, v in (
        ("1f1b", 1),
        ("interleaved", 2),
        ("zb_h1", 1),
        ("zbv", 2),
        ("dualpipev", 2),
        ("looped_bfs", 3),
        ("interleaved_zb", 3),
    ):
        many = pipeline_makespan_s(schedule, 16, p, v, 0, total, longest, total / 3, 0.01)
        assert many.shape == (3,)
        for row in range(3):
            one = pipeline_makespan_s(schedule, 16, p[row], v, 0, total[row], longest[row], total[row] / 3, 0.01)
            assert float(one) == many[row]


def test_unknown_schedule_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="unknown schedule 'chimera'"):
        pipeline_makespan_s("chimera", 8, 4, 1, 0, 4.0, 1.0, 1.0, 0.0)
