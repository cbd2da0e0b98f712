"""A fleet: one job is a row of its curve, equal jobs are asked once, who moves and who waits, one clear error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from planner.answers.fleet.answer import Fleet
from planner.answers.fleet.curves import arrival_s
from planner.answers.fleet.nodes import Holding, fleet_nodes
from planner.answers.fleet.offers import sizes
from planner.answers.fleet.question import FleetJob, FleetQuestion
from planner.answers.replan.resharding import resharding
from planner.answers.throughput.curve import throughput_curve
from planner.errors import DocumentInvalid, MeshwrightError, NotFound
from planner.operations.fleet import FLEET, fleet_clusters, fleet_problems
from planner.operations.operation import Session
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy
from profiles.validation import read_document
from tests.plan_factory import make_model, make_plan

MODEL = make_model(4).model_dump(mode="json")
BIGGER = make_model(8).model_dump(mode="json")
WORK = {"global_batch_size": 64, "sequence_length": 2048}
ONE = {"backends": ["megatron"], "pins": {"tp": 1, "pp": 1, "cp": 1}}
POOL = {"name": "a100", "cluster": "dgx-a100-80g", "nodes": ["n[1-4]"], "blocks": {"a": ["n[1-2]"], "b": ["n[3-4]"]}}


class Asked:
    """Plans that are kept, and how many searches there were."""

    def __init__(self) -> None:
        self.plans: dict[str, Plan] = {}

    def fleet(self, **said: Any) -> Fleet:
        session = Session(lambda name: self.plans[name], keep=lambda plan, _: self.plans.update({plan.plan_id: plan}))
        return FLEET.work(session, question(**said))


def job(name: str, **said: Any) -> dict[str, Any]:
    return {"name": name, "model": MODEL, "workload": WORK, "constraints": ONE, **said}


def question(**said: Any) -> FleetQuestion:
    return read_document(FleetQuestion, {"pools": [POOL], "jobs": [job("one")], "budget_s": 30, **said}, "fleet.yaml")


def rates(found: Fleet) -> dict[int, float]:
    """Tokens/s of the first job, by nodes."""
    return {row.nodes: row.point.tokens_per_s or 0.0 for row in found.curves[0].rows}


@pytest.fixture(scope="module")
def three() -> tuple[Asked, Fleet]:
    """Three jobs on four nodes, two of them equal; the third counts most and may have two nodes."""
    asked = Asked()
    jobs = [job("first"), job("second"), job("third", model=BIGGER, weight=3, max_devices=16, compact=True)]
    return asked, asked.fleet(jobs=jobs)


def by_name(found: Fleet) -> Mapping[str, Any]:
    return {each.name: each for each in found.jobs}


def test_one_job_gets_the_row_of_its_curve() -> None:
    found = Asked().fleet(jobs=[job("one", device_counts=[16])])
    asked = question()
    problem = fleet_problems(asked, fleet_nodes(asked, fleet_clusters(asked)))[0][0]
    row = throughput_curve(problem, [16], budget_s=30).points[0]
    (one,) = found.jobs
    assert found.curves[0].rows[0].point == row
    assert (one.plan_id, one.step_time_s, one.tokens_per_s) == (row.plan_id, row.step_time_s, row.tokens_per_s)
    assert (one.devices, one.nodes, one.change, one.relative_speed) == (16, ("n1", "n2"), "starts", 1.0)


def test_every_node_is_given_once_and_equal_jobs_are_asked_once(three: tuple[Asked, Fleet]) -> None:
    asked, found = three
    jobs = by_name(found)
    given = [name for each in found.jobs for name in each.nodes]
    assert sorted(given) == ["n1", "n2", "n3", "n4"]
    assert jobs["first"].curves == jobs["second"].curves != jobs["third"].curves
    assert len(found.curves) == 2
    # It counts most, and lies in one block.
    assert jobs["third"].devices == 16
    assert len(jobs["third"].blocks) == 1
    assert jobs["first"].devices == jobs["second"].devices == 8
    assert all(each.proved and each.gap < 1e-5 for each in found.goals)
    assert all(each.plan_id in asked.plans for each in found.jobs)
    larger = jobs["first"].larger
    assert larger.more_nodes == 1
    rate = rates(found)
    assert larger.gain_tokens_per_s == rate[2] - rate[1]
    # The fifth node would go to one of the two.
    gain = found.pools[0].one_node_more
    assert gain is not None
    assert gain.gain == pytest.approx(larger.gain_tokens_per_s / rate[4], rel=1e-3)


def test_a_lost_node_moves_whom_it_must(three: tuple[Asked, Fleet]) -> None:
    asked, found = three
    before = by_name(found)
    lost = before["first"].nodes[0]
    jobs = [job("first"), job("second"), job("third", model=BIGGER, weight=3, max_devices=16, compact=True)]
    again = asked.fleet(jobs=jobs, former=found.model_dump(mode="json"), lost_nodes=[lost], moves="fewest")
    after = by_name(again)
    # Three nodes are left: the one that lost its own has no room without moving the largest.
    assert {name: each.change for name, each in after.items()} == {
        "first": "moves",
        "second": "stays",
        "third": "moves",
    }
    assert lost not in {name for each in again.jobs for name in each.nodes}
    assert again.moved == 2
    assert after["third"].why == "from 2 nodes to 1"
    waits = asked.fleet(jobs=[*jobs[1:], jobs[0]], former=found.model_dump(mode="json"), lost_nodes=[lost])
    assert by_name(waits)["third"].nodes == before["third"].nodes


def test_sizes_are_powers_of_two_and_both_ends_those_between_where_asked_and_after_an_answer_none_of_the_rest() -> None:
    asked = question(pools=[{**POOL, "nodes": ["n[1-7]"], "blocks": None}])
    (pool,) = fleet_nodes(asked, fleet_clusters(asked))

    def of(said: dict[str, Any], holding: Holding | None = None, known: tuple[int, ...] = ()) -> set[int]:
        one = FleetJob.model_validate({**job("one"), **said})
        return set(sizes(one, "/jobs/0", pool, holding, 0, known))

    assert of({}) == {1, 2, 4, 7}
    assert of({"between": True}) == {1, 2, 3, 4, 6, 7}
    assert of({"min_devices": 24, "max_devices": 40}) == {3, 4, 5}
    # A node was lost: seven are no size of the former answer, and five are what a job of six has left.
    assert of({}, known=(1, 2, 4, 8)) == {1, 2, 4}
    assert of({}, known=(1, 2, 4, 7)) == {1, 2, 4, 7}
    assert of({}, Holding(0, ("n1", "n2", "n3"), whole=True, plan=None)) == {1, 2, 3, 4, 7}
    assert of({}, Holding(0, ("n1", "n2", "n3"), whole=False, plan=None)) == {1, 2, 4, 7}


def test_an_arrival_leaves_the_others_where_moving_costs_all(three: tuple[Asked, Fleet]) -> None:
    asked, found = three
    stuck: dict[str, Any] = {"preemption_s": 1e6}
    jobs = [job("first", **stuck), job("second", **stuck)]
    jobs += [
        job("third", model=BIGGER, weight=3, max_devices=16, compact=True, preemptible=False),
        job("new", weight=0.5),
    ]
    again = asked.fleet(jobs=jobs, former=found.model_dump(mode="json"))
    after = by_name(again)
    assert [after[name].change for name in ("first", "second", "third", "new")] == ["stays", "stays", "stays", "waits"]
    assert (
        "needs 1 node at the least, and 0 are left; were it to run, weighted relative speed would be"
        in after["new"].why
    )
    assert again.curves == found.curves
    heavier = asked.fleet(jobs=[*jobs[:3], job("new", weight=2.0, max_devices=8)], former=found.model_dump(mode="json"))
    assert sorted(each.change for each in heavier.jobs) == ["starts", "stays", "stays", "stops"]


def test_objectives_differ(three: tuple[Asked, Fleet]) -> None:
    _, found = three
    former = found.model_dump(mode="json") | {"jobs": []}
    rate = rates(found)
    hour = 3600.0
    late = job("late", tokens_to_go=1.5 * rate[1] * hour, deadline_hours=1.0, weight=0.1)
    pool = {**POOL, "price_per_device_hour": 2.0}
    said: dict[str, Any] = {"former": former, "pools": [pool]}
    heavy = job("heavy", weight=9, device_counts=[8, 32])
    fast = by_name(Asked().fleet(jobs=[late, heavy], **said))
    assert (fast["heavy"].devices, fast["late"].change) == (32, "waits")
    kept = by_name(Asked().fleet(jobs=[late, heavy], objective="deadlines", **said))
    assert (kept["late"].devices, kept["late"].keeps_deadline, kept["heavy"].devices) == (16, True, 8)
    cheap = by_name(Asked().fleet(jobs=[job("late"), heavy], objective="cost", **said))
    assert [each.cost_per_hour for each in cheap.values()] == [16.0, 16.0]
    fair = by_name(Asked().fleet(jobs=[job("late"), job("heavy")], objective="fairness", **said))
    assert [each.devices for each in fair.values()] == [16, 16]


def test_the_plan_that_a_job_runs_is_what_staying_means(three: tuple[Asked, Fleet]) -> None:
    asked, found = three
    slower = asked.plans[by_name(found)["first"].plan_id].model_copy(update={"step_time_s": 100.0})
    asked.plans["slow"] = slower
    former = found.model_dump(mode="json") | {"jobs": []}
    held = {"pool": "a100", "nodes": ["n2"], "plan": "slow"}
    stays = asked.fleet(jobs=[job("first", current=held, preemptible=False)], former=former).jobs[0]
    assert (stays.change, stays.step_time_s, stays.nodes) == ("stays", 100.0, ("n2",))
    with pytest.raises(DocumentInvalid, match=r"job first: plan .* is of 8 devices, its nodes have 16"):
        asked.fleet(jobs=[job("first", current={**held, "nodes": ["n[1-2]"]})], former=former)


def test_all_the_state_arrives_where_nothing_is_kept() -> None:
    plan = make_plan(Strategy(dp_shard=8, num_microbatches=8, zero_stage=1))
    moved = resharding(plan, plan, [None] * 8)
    pool = plan.problem.cluster.pools[0]
    assert arrival_s(plan) == pytest.approx(
        moved.busiest_node_bytes / (pool.nics_per_node * pool.nic_bandwidth_bytes_per_s), rel=1e-6
    )


@pytest.mark.parametrize(
    ("said", "what", "where"),
    [
        ({"jobs": [job("a"), job("a")]}, "job a is named twice", "/jobs/1/name"),
        ({"jobs": [job("a", pools=["b200"])]}, "job a: no pool is called b200", "/jobs/0/pools"),
        ({"jobs": [job("a", deadline_hours=3)]}, "job a: a deadline of how many tokens?", "/jobs/0/tokens_to_go"),
        ({"jobs": [job("a", min_devices=16, max_devices=8)]}, "job a: max_devices 8 is below", "/jobs/0/max_devices"),
        ({"jobs": [job("a", device_counts=[12])]}, "job a: 12 devices are no whole nodes", "/jobs/0/device_counts"),
        ({"jobs": [job("a", model="no-such")]}, "job a: ", "/jobs/0/model"),
        (
            {"jobs": [job("a", current={"pool": "a100", "nodes": ["x"]})]},
            "job a: node x is not",
            "/jobs/0/current/nodes",
        ),
        ({"jobs": [job("a", current={"pool": "b", "nodes": ["n1"]})]}, "job a: no pool is called b", "/current/pool"),
        (
            {"jobs": [job(name, current={"pool": "a100", "nodes": ["n1"]}) for name in "ab"]},
            "job b: node n1 is held by job a",
            "/jobs/1/current/nodes",
        ),
        ({"pools": [POOL, POOL]}, "pool a100 is named twice", "/pools"),
        ({"pools": [POOL, {**POOL, "name": "other"}]}, "node n1 is named twice", "/pools"),
        ({"pools": [{**POOL, "busy": ["x"]}]}, "node x is not of pool a100", "/pools/0/busy"),
        ({"pools": [{**POOL, "blocks": {"a": ["n[1-3]"]}}]}, "pool a100: node n4 lies in no block", "/pools/0/blocks"),
        ({"pools": [{**POOL, "cluster": "no-such"}]}, "pool a100: ", "/pools/0/cluster"),
        ({"objective": "cost"}, "pool a100: what does a device cost?", "/pools/0/price_per_device_hour"),
        ({"lost_nodes": ["x"]}, "node x is not of any pool", "/lost_nodes"),
    ],
)
def test_what_cannot_be_is_one_clear_error(said: dict[str, Any], what: str, where: str) -> None:
    with pytest.raises(MeshwrightError) as raised:
        Asked().fleet(**said)
    assert isinstance(raised.value, DocumentInvalid | NotFound)
    assert raised.value.what.startswith(what)
    assert (raised.value.where or "").endswith(where)


def test_a_job_that_no_size_holds_waits_and_says_why() -> None:
    found = Asked().fleet(jobs=[job("wide", min_devices=64), job("odd", constraints={**ONE, "pins": {"tp": 3}})])
    wide, odd = found.jobs
    assert (wide.change, wide.why) == ("waits", "no size of it is allowed")
    assert odd.change == "waits"
    assert odd.why
    assert odd.why != wide.why


def test_what_is_not_said_of_preemption_is_an_assumption() -> None:
    asked = question(jobs=[job("a", current={"pool": "a100", "nodes": ["n1"]})])
    assert "preemption_s is not said: a" in Asked().fleet(**asked.model_dump(mode="json")).assumptions[-1]
