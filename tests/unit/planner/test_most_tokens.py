"""The plan with the most tokens a day is that of the best number of devices, each planned by itself."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from pydantic import ValidationError

from planner.errors import DocumentInvalid
from planner.plan.plan import Plan
from planner.question.problem import UNRESTRICTED, Constraints, Objective, Problem, Workload
from planner.question.reliability import Reliability
from planner.search.device_counts import cut_to
from planner.search.find import find_plan, plan_on_all_devices
from planner.search.goodput.goodput import goodput
from planner.search.most_tokens import node_counts, standing_by
from planner.search.options import SearchOptions
from planner.search.recheck import recheck_plan
from tests.plan_factory import make_cluster, make_model

QUICK = SearchOptions(top_k=0)
STORAGE = {"storage_bandwidth_bytes_per_s": 1e10}
SELDOM = {**STORAGE, "failures_per_device_hour": 1e-9, "repair_hours": 24.0}
OFTEN = {**STORAGE, "failures_per_device_hour": 1e-3, "repair_hours": 100.0}


def question(reliability: dict[str, Any]) -> Problem:
    pins: dict[str, int | str | bool] = {"tp": 1, "pp": 1, "cp": 1, "dp_replicate": 1, "zero_stage": 1}
    return Problem(
        model=make_model(4),
        cluster=make_cluster(32, devices_per_node=4),
        workload=Workload(global_batch_size=96, sequence_length=2048),
        constraints=Constraints(
            backends=(UNRESTRICTED,), pins=pins, forbids=("optimizer_offload", "activation_offload")
        ),
        objective=Objective.model_validate({"minimize": "tokens_per_day", "reliability": reliability}),
    )


@cache
def planned(nodes: int) -> Plan:
    """The best plan of a number of nodes, by itself."""
    return plan_on_all_devices(cut_to(question(SELDOM), 4 * nodes), QUICK, None)


@pytest.mark.parametrize(("reliability", "devices"), [(SELDOM, 32), (OFTEN, 24)], ids=["seldom", "often"])
def test_the_pick_is_the_best_number_of_devices(reliability: dict[str, Any], devices: int) -> None:
    asked = question(reliability)
    said = Reliability.model_validate(reliability)
    by_nodes = {4 * nodes: goodput(planned(nodes), standing_by(said, 8 - nodes)).tokens_per_day for nodes in (4, 6, 8)}
    plan = find_plan(asked, QUICK)
    assert plan.problem.cluster.num_devices == devices == max(by_nodes, key=lambda count: by_nodes[count])
    differs = f"without failures the pick would be 32 devices, which give {by_nodes[32]:.4g} with them"
    assert plan.search.proof.endswith("the pick is the same" if devices == 32 else differs)
    recheck_plan(plan, asked)


def test_all_nodes_and_those_that_leave_spares_are_looked_at() -> None:
    assert node_counts(question(OFTEN), Reliability.model_validate(OFTEN)) == [8, 7, 6, 4]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"minimize": "tokens_per_day"}, "needs reliability"),
        ({"reliability": STORAGE}, "does not count failures"),
        ({"minimize": "tokens_per_day", "reliability": {**STORAGE, "spare_nodes": 1}}, "leave it out"),
    ],
)
def test_objectives_that_do_not_agree_are_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Objective.model_validate(said)


def test_the_flag_says_the_same() -> None:
    from planner.cli.options import ObjectiveChoice
    from planner.cli.problem_inputs import SpaceFlags, read_objective

    tokens = ObjectiveChoice.TOKENS_PER_DAY
    text = "storage_bandwidth_bytes_per_s=1e10,repair_hours=100,asynchronous=true,failures_of=rsc-1"
    read = read_objective(SpaceFlags({}, objective=tokens, reliability=text)).reliability
    assert read == Reliability(
        storage_bandwidth_bytes_per_s=1e10, repair_hours=100, asynchronous=True, failures_of="rsc-1"
    )
    for flags in (
        SpaceFlags({}, objective=tokens),
        SpaceFlags({}, reliability=text),
        SpaceFlags({}, objective=tokens, reliability="repair_hours"),
        SpaceFlags({}, objective=tokens, reliability="repair=3"),
        SpaceFlags({}, objective=tokens, reliability=f"{text},repair_hours=48"),
    ):
        with pytest.raises(DocumentInvalid):
            read_objective(flags)
