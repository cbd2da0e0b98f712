from __future__ import annotations

import io
import sys

import pytest

from planner.cli.output import render_text
from planner.cli.render.comparison import diff_report
from planner.cli.render.plan import plan_report
from planner.diff import diff_plans
from planner.plan import Alternative, Plan
from planner.strategy import Strategy
from tests.plan_factory import make_cluster, make_model, make_plan


def text_of(plan: Plan) -> str:
    return render_text(plan_report(plan, wall_s=1.25, timeline="F.B"))


@pytest.fixture
def plan() -> Plan:
    made = make_plan(Strategy(pp=2, dp_shard=4, num_microbatches=8))
    other = Alternative(
        strategy={"tp": 2, "sp": True},
        step_time_s=1.5 * made.step_time_s,
        peak_memory_bytes=2**33,
        slower_by=0.5,
        differs_in=("tp", "sp"),
    )
    return made.model_copy(update={"alternatives": (other,)})


def test_the_report_says_what_the_plan_says(plan: Plan) -> None:
    text = text_of(plan)
    assert plan.plan_id[:12] in text
    assert "small-llama on 8" in text
    assert "pp=2" in text
    assert "optimal: proved best" in text
    assert "pipeline bubble" in text
    assert "+50.0 %" in text
    assert "tp=2, sp=true" in text
    assert "F.B" in text
    assert "in 1.25 s" in text
    assert "Made by hand for a test." in text
    share = 100 * plan.breakdown_s["pp_bubble"] / sum(plan.breakdown_s.values())
    assert f"{share:.1f} %" in text


def test_memory_is_shown_against_the_limit(plan: Plan) -> None:
    small = plan.model_copy(update={"memory_limit_bytes": plan.peak_memory_bytes // 2, "status": "infeasible"})
    assert "too much" in text_of(small)
    assert "200.0 %" in text_of(small)
    assert "spare" in text_of(plan)


def test_long_pipelines_are_folded() -> None:
    strategy = Strategy(pp=32, num_microbatches=64)
    plan = make_plan(strategy, model=make_model(64), cluster=make_cluster(32))
    text = text_of(plan)
    rows = [line for line in text.splitlines() if " GiB" in line and " ms" in line]
    assert 2 <= len(rows) < 32
    assert rows[0].split()[0] == "0"
    assert rows[-1].split()[0].endswith("31")


def test_a_plain_terminal_gets_plain_characters(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert text_of(plan).isascii()


def test_a_diff_shows_both_sides(plan: Plan) -> None:
    other = make_plan(Strategy(tp=4, sp=True, dp_shard=2, num_microbatches=16))
    text = render_text(diff_report(diff_plans(plan, other)))
    assert plan.plan_id[:12] in text
    assert other.plan_id[:12] in text
    assert "Time by term" in text
    assert "Memory of the worst device" in text
    assert render_text(diff_report(diff_plans(plan, plan))).strip() == "The two plans are the same."


def test_another_cluster_is_one_line_of_the_question(plan: Plan) -> None:
    pool = plan.problem.cluster.pools[0]
    device = pool.device.model_copy(update={"name": "other-device", "memory_bytes": 2**36})
    cluster = plan.problem.cluster.model_copy(
        update={"name": "other", "pools": (pool.model_copy(update={"device": device}),)}
    )
    other = plan.model_copy(update={"problem": plan.problem.model_copy(update={"cluster": cluster})})
    diff = diff_plans(plan, other)
    assert len(diff.problem) == 3
    lines = [line for line in render_text(diff_report(diff)).splitlines() if line.startswith("/cluster")]
    assert len(lines) == 1
    assert "2 more fields differ" in lines[0]
    assert lines[0].split()[-1] == "other"
