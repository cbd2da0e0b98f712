"""Placing a plan's nodes: the example of the how-to, aligned and flat allocations, bad input."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from planner.answers.placement.axes import crossing_axes
from planner.answers.placement.judge import Judge
from planner.answers.placement.placement import Placement, place_nodes
from planner.answers.placement.switches import read_switches
from planner.errors import DocumentInvalid
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.mesh import build_mesh
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from profiles.fabric.build import fabric_of
from profiles.fabric.traffic import load_of
from solver.constraint_program import Effort
from tests.command_line import REPOSITORY, run_here
from tests.plan_factory import make_cluster, make_model, make_moe_model

EXAMPLE = REPOSITORY / "examples" / "placement"
EFFORT = Effort(wall_s=2.0, deterministic_s=0.2)
TWO_LEAVES = "leaf1: n[0-1]\nleaf2: n[2-3]"


@cache
def plan_of(strategy: Strategy, oversubscription: float, *, experts: bool = False) -> Plan:
    """A small model on four nodes of eight, two a leaf."""
    cluster = make_cluster(32)
    fabric = load_cluster("dgx-h100", 8).fabric
    levels = (fabric[0].model_copy(update={"num_nodes": 2, "oversubscription": oversubscription}), fabric[1])
    problem = Problem(
        model=make_moe_model() if experts else make_model(),
        cluster=cluster.model_copy(update={"fabric": levels}),
        workload=Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096),
        constraints=Constraints(backends=("megatron",)),
    )
    return estimate(problem, strategy)


def placed(plan: Plan, nodes: str, topology: str = TWO_LEAVES) -> Placement:
    return place_nodes(plan, nodes.split(), read_switches(topology), EFFORT)


DENSE = Strategy(tp=4, sp=True, pp=2, dp_shard=4, num_microbatches=8)
EXPERTS = Strategy(ep=16, pp=2, dp_shard=16, num_microbatches=8)


@pytest.mark.budget(3)
def test_the_example_of_the_how_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    commands = (REPOSITORY / "docs" / "how-to" / "place-ranks.md").read_text(encoding="utf-8").split("```sh\n")[1]
    plan_file, hosts = tmp_path / "plan.json", tmp_path / "hosts.txt"
    lines = commands.partition("```")[0].replace("\\\n", " ").splitlines()
    words = [line.split("#")[0].replace("plan.json", str(plan_file)).split() for line in lines if line.strip()]
    for command in words[:2]:
        assert command[0] == "meshwright"
        ran = run_here(*[str(hosts) if word == "hosts.txt" else word for word in command[1:]], "-o", "json")
        assert ran.exit_code == 0, ran.stderr
    answer = ran.json()
    assert answer["changed"]
    assert answer["placed_step_time_s"] < 0.9 * answer["listed_step_time_s"]
    assert answer["bound_exposed_s"] <= answer["placed_exposed_s"] <= answer["listed_exposed_s"]
    assert hosts.read_text(encoding="utf-8").split() == answer["order"]
    assert len(set(answer["order"])) == answer["num_nodes"] == 16


def test_experts_that_share_a_leaf_stay_together() -> None:
    found = placed(plan_of(EXPERTS, 8.0, experts=True), "n0 n2 n1 n3")
    assert found.changed
    assert {frozenset(found.order[:2]), frozenset(found.order[2:])} == {
        frozenset({"n0", "n1"}),
        frozenset({"n2", "n3"}),
    }
    assert found.placed_step_time_s == pytest.approx(found.plan_step_time_s)
    assert found.listed_step_time_s > found.plan_step_time_s


def test_an_aligned_allocation_keeps_its_order() -> None:
    plan = plan_of(EXPERTS, 8.0, experts=True)
    found = placed(plan, "n0 n1 n2 n3")
    assert not found.changed
    assert found.order == ("n0", "n1", "n2", "n3")
    assert found.listed_step_time_s == found.placed_step_time_s == plan.step_time_s
    assert found.gap == pytest.approx(0.0, abs=0.05)


def test_without_oversubscription_every_order_is_as_good() -> None:
    found = placed(plan_of(DENSE, 1.0), "n0 n2 n1 n3")
    assert not found.changed
    assert found.faster_by == 0.0
    assert found.gap == 0.0


def test_of_too_many_nodes_some_are_left_out() -> None:
    found = placed(plan_of(EXPERTS, 8.0, experts=True), "n0 n2 n4 n1 n3", TWO_LEAVES + "\nleaf3: n4")
    assert len(set(found.order)) == 4
    assert found.placed_step_time_s <= found.listed_step_time_s


@pytest.mark.parametrize(
    ("nodes", "topology", "words"),
    [
        ("n0 n1 n2 n9", TWO_LEAVES, "no leaf for n9"),
        ("n0 n1 n2", TWO_LEAVES, "3 nodes for a plan of 4"),
        ("n0 n1 n2 n3", "leaf1: n[0-3]\nleaf2: n3", "n3 is under leaf1 and under leaf2"),
        ("n0 n1 n2 n3", "n0 n1 n2 n3", "names neither a switch nor a leaf"),
        ("n0 n1 n2 n3", "# nothing", "names no nodes"),
    ],
)
def test_bad_input_has_one_clear_error(nodes: str, topology: str, words: str) -> None:
    with pytest.raises(DocumentInvalid, match=words):
        placed(plan_of(DENSE, 8.0), nodes, topology)


def test_tiers_come_from_slurm_lines() -> None:
    text = "SwitchName=l1 Nodes=a[1-2]\nSwitchName=l2 Nodes=b\nSwitchName=s1 Switches=l1\nSwitchName=s2 Switches=l2"
    switches = read_switches(text)
    assert [name for name, _ in switches.tiers] == ["leaf", "spine"]
    assert switches.of(["b", "a2"], "--topology") == [["l2", "l1"], ["s2", "s1"]]


def test_a_ring_of_nodes_sends_its_share_from_every_node() -> None:
    """Over unequal leaves too: NCCL's rings know nodes, not leaves."""
    cluster = load_cluster("dgx-h100", 40 * 8)
    fabric, groups = fabric_of(cluster), np.arange(0, 40 * 8, 8)[None, :]
    load = load_of(fabric, groups, "node_ring")
    assert fabric.first_cable is not None
    sent = load.amount[load.link == 2 * fabric.first_cable]
    assert sent.tolist() == pytest.approx([39 / 40])
    assert load.amount.max() == pytest.approx(39 / 40)


@pytest.mark.parametrize(
    "strategy",
    [DENSE, Strategy(tp=2, sp=True, pp=4, vpp=2, schedule="interleaved", dp_shard=4, num_microbatches=8, zero_stage=1)],
    ids=["1f1b", "interleaved"],
)
def test_the_cost_model_is_asked_about_the_plan_itself(strategy: Strategy) -> None:
    plan = plan_of(strategy, 4.0)
    judge = Judge(plan, crossing_axes(plan, build_mesh(plan.chosen(), plan.problem.cluster)), 4)
    assert judge.unplaced_s == plan.step_time_s
    twice = judge.step_time_s([2.0] * len(judge.axes))
    assert plan.step_time_s < twice < 2 * plan.step_time_s
