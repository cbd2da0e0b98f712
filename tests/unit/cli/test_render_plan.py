from __future__ import annotations

import io
import re
import sys

import pytest

from planner.answers.diff import diff_plans
from planner.cli.output import render_text
from planner.cli.render.comparison import diff_report
from planner.cli.render.plan import plan_report
from planner.plan.plan import Alternative, BackEndAnswer, Plan, UnrestrictedAnswer
from planner.strategy.strategy import Strategy
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
    assert "optimal: no plan of its space is predicted to be faster" in text
    assert "pipeline bubble" in text
    assert "+50.0 %" in text
    assert "tp=2, sp=true" in text
    assert "F.B" in text
    assert "in 1.25 s" in text
    assert "Made by hand for a test." in text
    share = 100 * plan.breakdown_s["pp_bubble"] / sum(plan.breakdown_s.values())
    assert f"{share:.1f} %" in text


def wide(plan: Plan, columns: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    return text_of(plan)


def with_back_ends(plan: Plan) -> Plan:
    """The plan as the answer of three back-ends, one of which has none, beside a faster one of the free space."""
    slower_s = 1.25 * plan.step_time_s
    rows = (
        BackEndAnswer(
            backend="megatron", release="0.19.2", step_time_s=plan.step_time_s, slower_by=0.0, gap=0.0,
            strategy=plan.strategy,
        ),
        BackEndAnswer(
            backend="native", release="2.13.0", step_time_s=slower_s, slower_by=0.25, gap=0.01,
            strategy={**plan.strategy, "recompute": "full", "vpp": 2},
        ),
        BackEndAnswer(backend="maxtext", release="0.2.5", reason="2 problems\n  R1: one thing\n  R2: another"),
    )  # fmt: skip
    free = UnrestrictedAnswer(
        step_time_s=0.994 * plan.step_time_s,
        faster_by=0.006,
        gap=0.01,
        strategy={**plan.strategy, "schedule": "interleaved_zb"},
        differs_in=("schedule",),
        why="Megatron-LM 0.19.2 has no interleaved_zb schedule",
    )
    return plan.model_copy(update={"backend": "megatron", "release": "0.19.2", "backends": rows, "unrestricted": free})


def test_the_report_names_the_back_end_and_what_is_proved(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    text = wide(with_back_ends(plan), 200, monkeypatch)
    assert f"PLAN {with_back_ends(plan).plan_id[:12]} for Megatron-LM 0.19.2, optimal: no plan of the spaces of" in text
    assert "all back-ends that were asked is predicted to be faster" in text
    assert "optimal: proved best" not in text


def test_every_back_end_has_a_line_and_the_free_space_a_sentence(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = wide(with_back_ends(plan), 200, monkeypatch).splitlines()
    (native,) = [line for line in lines if line.startswith("native PyTorch 2.13.0")]
    assert "+25.0 %" in native
    assert "1.0 %" in native
    assert "pp=2x2 dp=4 zero=1 mbs=1 1f1b, recompute full" in native
    (none,) = [line for line in lines if line.startswith("MaxText 0.2.5")]
    assert none.endswith("R1: one thing; R2: another")
    said = " ".join(lines[lines.index(none) :])
    assert "0.6 % faster" in said
    assert "within 1.0 % of the best" in said
    assert "if Megatron-LM 0.19.2 could run schedule=interleaved_zb" in said
    assert "has no interleaved_zb schedule." in said


def test_a_plan_of_one_back_end_has_no_table_of_them(plan: Plan) -> None:
    assert "Back-ends" not in text_of(plan)
    assert "no back-end can run yet" not in text_of(plan)


def test_software_that_is_gone_keeps_its_name(plan: Plan) -> None:
    gone = plan.model_copy(update={"backend": "gone", "release": "7"})
    assert f"PLAN {gone.plan_id[:12]} for gone 7, " in text_of(gone)


@pytest.mark.parametrize("columns", [100, 140])
def test_a_narrow_terminal_keeps_every_number_of_a_stage(
    plan: Plan, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = wide(plan, columns, monkeypatch)
    assert max(map(len, text.splitlines())) <= columns
    rows = [line for line in text.splitlines() if line.startswith(("    0 ", "    1 ")) and " GiB" in line]
    assert len(rows) == 2
    for row in rows:
        assert len(re.findall(r"\d+\.\d(?: |$)", row)) >= 6, "peak and five parts of memory"
        assert row.count(" ms") == 2
    assert ("of limit" in text) == (columns == 140)
    assert "recompute none" in text


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
