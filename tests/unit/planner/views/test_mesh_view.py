"""The map that is drawn is the mesh that the cost model uses."""

from __future__ import annotations

from itertools import product

import pytest

from planner.answers.views.mesh import MapAxis, MeshView, mesh_view
from planner.backends.asked import physics_of
from planner.model.load import load_model
from planner.plan.communication_bill import busiest_stages, communication_bill
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.mesh import build_mesh
from planner.strategy.strategy import AxisOrder, Strategy
from profiles.catalogue import load_cluster
from tests.plan_factory import make_cluster, make_moe_model, make_plan


def _plans() -> tuple[Plan, Plan]:
    """A dense plan on two nodes, with the pipeline inside, and one with experts."""
    order: AxisOrder = "tp-cp-ep-pp-dp"
    dense = Strategy(tp=2, sp=True, cp=2, cp_kind="ring", dp_shard=2, pp=2, axis_order=order, num_microbatches=4)
    experts = Strategy(tp=2, sp=True, ep=4, dp_shard=4, pp=2, num_microbatches=4)
    return make_plan(dense), make_plan(experts, make_moe_model(), make_cluster(16))


def _groups(view: MeshView, axis: MapAxis) -> set[frozenset[int]]:
    """Every group, from the shape of rank 0's and the digits that are not in it, as a page would draw them."""
    offsets = {0}
    for factor in axis.factors:
        offsets = {offset + step * factor.stride for offset, step in product(offsets, range(factor.size))}
    groups: set[frozenset[int]] = set()
    covered: set[int] = set()
    for rank in range(view.world_size):
        if rank not in covered:
            group = frozenset(rank + offset for offset in offsets)
            groups.add(group)
            covered |= group
    return groups


def test_groups_from_shapes_are_those_of_the_mesh() -> None:
    for plan in _plans():
        view, mesh = mesh_view(plan), build_mesh(plan.chosen(), plan.problem.cluster)
        assert view.axes
        for axis in view.axes:
            assert _groups(view, axis) == {frozenset(group) for group in mesh.groups(axis.axis)}  # type: ignore[arg-type]
            assert axis.num_groups * axis.group_size == view.world_size


def test_digits_give_every_ranks_coordinates() -> None:
    for plan in _plans():
        view, mesh = mesh_view(plan), build_mesh(plan.chosen(), plan.problem.cluster)
        for rank in range(view.world_size):
            shown = {digit.name: rank // digit.stride % digit.size for digit in (*view.expert, *view.dense)}
            assert shown.items() <= mesh.coordinates(rank).items()


def test_a_group_of_one_talks_to_nobody() -> None:
    view = mesh_view(_plans()[1])
    alone = [axis for axis in view.axes if axis.group_size == 1]
    assert alone
    assert all(axis.level is None and "nobody" in axis.sentence for axis in alone)
    assert all(axis.level in {level.name for level in view.levels} for axis in view.axes if axis.group_size > 1)


def test_what_a_rank_sends_is_of_one_stage() -> None:
    """Its tables are tied to the last stage's multi-token prediction, so the first stage also reduces; others send."""
    problem = Problem(
        model=load_model("deepseek-v3"),
        cluster=load_cluster("dgx-h100", 256),
        workload=Workload(global_batch_size=128, sequence_length=4096),
        constraints=Constraints(backends=("megatron",)),
    )
    strategy = Strategy(pp=8, dp_shard=32, ep=8, zero_stage=1, num_microbatches=4)
    plan = estimate(problem, strategy, (6, 8, 8, 8, 8, 8, 8, 7))
    sent = {axis.axis: axis.bytes_per_step for axis in mesh_view(plan).axes}
    bill = communication_bill(plan, physics_of(plan))

    def of_stage(stage: int, *axes: str) -> float:
        return sum(line.bytes_per_step for line in bill if line.stage == stage and line.axis in axes)

    for axis, parts in {"pp": ("pp",), "ep": ("ep",), "edp": ("edp_shard", "edp_replicate")}.items():
        assert sent[axis] == pytest.approx(max(of_stage(stage, *parts) for stage in range(8)))
    lines = busiest_stages(bill)
    assert sent["pp"] < sum(line.bytes_per_step for line in lines if line.axis == "pp")
    assert sent["tp"] == 0.0
