"""Coverage says where a plan's numbers come from, and the interval is made from the rungs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.answers.explain.leaning import leaning_view
from planner.backends.asked import physics_of
from planner.model.builtin import builtin_model
from planner.predict.cost.hardware import hardware_of
from planner.predict.coverage.coverage import Coverage, class_sigma, coverage
from planner.predict.coverage.leaning import ROOFLINE_SIGMA, Leaning
from planner.predict.uncertainty import DATASHEET_SIGMA, step_interval_s, step_sigma
from planner.question.problem import Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from profiles.prediction.rungs import Rung
from tests.measured_problems import random_profile

STRATEGY = Strategy(tp=2, sp=True, dp_shard=4, zero_stage=1, num_microbatches=8)


def problem() -> Problem:
    return Problem(
        model=builtin_model("llama-3.1-8b"),
        cluster=load_cluster("dgx-h100", 8),
        workload=Workload(global_batch_size=32, sequence_length=4096),
    )


def covered(question: Problem) -> Coverage:
    plan = estimate(question, STRATEGY)
    hardware = hardware_of(question.cluster, "bf16", question.profile, physics=physics_of(plan))
    return coverage(question, hardware, STRATEGY, plan.breakdown_s)


def leaning(term: str, seconds: float, sigma: float, rung: Rung = Rung.ROOFLINE) -> Leaning:
    return Leaning(term, "matmul x", "forward", "bf16", {"m": 1}, rung, sigma, seconds)


def test_without_measurements_everything_is_datasheet() -> None:
    found = covered(problem())
    assert found.provenance_shares == {"datasheet": pytest.approx(1.0)}
    assert found.input_sigma == pytest.approx(ROOFLINE_SIGMA)


def test_lookups_add_up_to_the_terms_that_they_belong_to() -> None:
    question = problem()
    plan = estimate(question, STRATEGY)
    found = covered(question)
    compute = sum(each.seconds for each in found.leanings if each.term == "compute")
    tensor = sum(each.seconds for each in found.leanings if each.term == "tp")
    assert compute == pytest.approx(plan.breakdown_s["compute"] + plan.breakdown_s.get("recompute", 0.0))
    assert tensor == pytest.approx(plan.breakdown_s["tp"])


def test_measured_matmuls_are_told_from_the_rest_and_narrow_the_interval() -> None:
    question = problem()
    measured = question.model_copy(update={"profile": random_profile(question, 1, (0.5, 0.501))})
    found = covered(measured)
    shares = found.provenance_shares
    assert shares["interpolated"] + shares["extrapolated"] > 0.8
    assert 0 < shares["datasheet"] < 0.5
    plan, plain = estimate(measured, STRATEGY), estimate(question, STRATEGY)
    low, high = plan.step_time_interval_s
    wide_low, wide_high = plain.step_time_interval_s
    assert high / low < wide_high / wide_low
    studied = physics_of(plan).spread_at(STRATEGY.world_size, experts=0)
    assert plan.step_time_interval_s == step_interval_s(plan.breakdown_s, found.input_sigma, studied_sigma=studied)
    assert plan.provenance["time_by_input"] == {name: round(share, 4) for name, share in sorted(shares.items())}


def test_a_table_that_is_mostly_noise_widens_the_interval() -> None:
    question = problem()
    noisy = covered(question.model_copy(update={"profile": random_profile(question, 1)}))
    assert noisy.input_sigma["compute"] > 2 * ROOFLINE_SIGMA["compute"]


def test_the_sigma_of_a_class_is_the_weighted_sum_of_its_lookups() -> None:
    sigma = class_sigma([leaning("compute", 3.0, 0.1), leaning("compute", 1.0, 0.5)])
    assert sigma["compute"] == pytest.approx((3 * 0.1 + 0.5) / 4)
    assert sigma["network"] == ROOFLINE_SIGMA["network"]


def test_datasheet_lookups_give_the_spread_of_plans_without_a_profile() -> None:
    breakdown_s = {"compute": 3.0, "tp": 1.0}
    inputs = {"compute": ROOFLINE_SIGMA["compute"], "network": ROOFLINE_SIGMA["network"]}
    assert step_sigma(breakdown_s, inputs) == pytest.approx(step_sigma(breakdown_s), rel=0.02)
    assert DATASHEET_SIGMA["compute"] == pytest.approx((0.15**2 + ROOFLINE_SIGMA["compute"] ** 2) ** 0.5, rel=0.02)


def test_measure_next_puts_the_largest_gain_first_and_leaves_out_what_is_measured() -> None:
    heavy = leaning("compute", 8.0, 0.2)
    light = leaning("compute", 1.0, 0.2)
    done = replace(leaning("compute", 20.0, 0.03), rung=Rung.EXACT)
    found = Coverage((heavy, light, done), {"compute": 29.0})
    gains = found.gains()
    assert [each for each, _ in gains] == [heavy, light]
    assert gains[0][1] > gains[1][1] > 0


@pytest.mark.parametrize(
    ("strategy", "nodes"),
    [
        # Tied embedding and head: a group of the first and the last stage, 48 and 56 devices apart.
        (Strategy(tp=2, sp=True, pp=4, dp_shard=8, num_microbatches=8), 2),
        (Strategy(tp=8, sp=True, pp=8, num_microbatches=8), 2),
        (Strategy(dp_shard=64, zero_stage=3), 8),
        (Strategy(tp=8, sp=True, dp_shard=8, zero_stage=3), 8),
    ],
)
def test_no_more_nodes_are_asked_for_than_the_largest_group_has_members_on(strategy: Strategy, nodes: int) -> None:
    question = Problem(
        model=builtin_model("llama-3.1-8b").model_copy(update={"tie_embeddings": True}),
        cluster=load_cluster("dgx-h100", 64),
        workload=Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096),
    )
    view = leaning_view(estimate(question, strategy), 500)
    (command,) = [each for each in view.commands if "collectives" in each]
    assert f"--nnodes {nodes} " in command
    widest = max(
        each.shape["group_size"] * each.shape["stride"] for each in view.measure_next if each.term != "compute"
    )
    # Group times stride, which was asked for, is more than the cluster where a group has gaps.
    assert (widest > 64) == (strategy.pp > 1)
