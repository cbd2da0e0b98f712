"""A plan that its nodes' memory is too small for: the document says what is kept there, and every answer says so."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from planner.answers.explain.neighbours import judge
from planner.answers.explain.why import explain
from planner.answers.explain.why_not import broken_rules
from planner.cli.render.plan import plan_report
from planner.plan.limits import missing
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from profiles.cluster import Cluster
from tests.plan_factory import make_cluster, make_model

OFFLOADED = Strategy(dp_shard=8, zero_stage=1, optimizer_offload=True)


def problem(host_bytes: int) -> Problem:
    """Eight devices whose node has so much memory."""
    cluster = make_cluster(8)
    pool = cluster.pools[0]
    host = pool.host.model_copy(update={"memory_bytes": host_bytes})
    return Problem(
        model=make_model(),
        cluster=Cluster(name="small-host", pools=(pool.model_copy(update={"host": host}),)),
        workload=Workload(global_batch_size=8, sequence_length=4096),
        constraints=Constraints(backends=("megatron",)),
    )


@pytest.fixture(scope="module")
def plan() -> Plan:
    return estimate(problem(2**30), OFFLOADED)


def test_the_document_says_what_a_device_keeps_on_the_host(plan: Plan) -> None:
    held = plan.stages[0].host_memory_bytes
    assert held is not None
    assert (held.activations, held.limit) == (0, int(0.9 * 2**30 / 8))
    assert held.total == held.optimizer == pytest.approx(12 * plan.stages[0].parameters_per_device / 8, rel=1e-3)
    assert held.missing > 0


def test_nothing_is_said_where_nothing_is_offloaded() -> None:
    plain = estimate(problem(2**40), Strategy(dp_shard=8, zero_stage=1))
    assert plain.stages[0].host_memory_bytes is None
    assert "host_memory_bytes" not in plain.model_dump(mode="json")["stages"][0]
    assert missing(plain) == ()


def test_it_is_said_that_host_memory_binds(plan: Plan) -> None:
    assert plan.status == "infeasible"
    assert plan.peak_memory_bytes < plan.memory_limit_bytes
    (told,) = missing(plan)
    assert told.startswith("host memory misses ")
    assert "(optimizer states " in told
    assert explain(plan, with_neighbours=False).sentences[0] == f"This strategy does not fit: {told}."


def test_a_plan_with_room_on_the_host_fits() -> None:
    roomy = estimate(problem(2**40), OFFLOADED)
    assert (roomy.status, missing(roomy)) == ("feasible", ())


def test_a_change_that_host_memory_forbids_says_so(plan: Plan) -> None:
    bare = estimate(problem(2**30), Strategy(dp_shard=8, zero_stage=1))
    assert broken_rules(bare, {"optimizer_offload": True}) == missing(plan)
    neighbour = judge(bare, "optimizer_offload on", OFFLOADED)
    assert (neighbour.outcome, neighbour.over_limit_bytes) == ("does_not_fit", None)
    assert neighbour.reason == missing(plan)[0]


def test_the_report_has_a_line_of_host_memory(plan: Plan) -> None:
    printed = io.StringIO()
    Console(file=printed, width=200).print(*plan_report(plan))
    (line,) = (line for line in printed.getvalue().splitlines() if line.startswith("host memory"))
    assert "GiB usable a device" in line
    assert line.rstrip().endswith("too much")
