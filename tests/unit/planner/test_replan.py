"""What moves when devices come and go: against a count of every parameter's holders, one by one."""

from __future__ import annotations

import re
from typing import Any

import pytest

from planner.answers.replan.horizon import break_even, horizon
from planner.answers.replan.keep import kept_layout
from planner.answers.replan.layout import FAMILIES, StateLayout, state_layout
from planner.answers.replan.lost import Lost, allocations
from planner.answers.replan.replan import Replan, Staying, replan
from planner.answers.replan.resharding import resharding
from planner.answers.replan.resume import checkpoint_use, keeps_curve, loss_changes
from planner.backends.registry import backends
from planner.errors import DocumentInvalid
from planner.model.parameters import total_parameters
from planner.plan.plan import Plan
from planner.predict.memory.states import optimizer_bytes
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.search.recheck import recheck_plan
from planner.strategy.text import complete_strategy
from profiles.catalogue import load_cluster
from tests.plan_factory import make_model, make_moe_model

FINE = 48
"""Cells a side of the grid on which the count is done: every degree used here divides it."""


def problem(devices: int, batch: int = 48, model: Any = None, backend: str = "any") -> Problem:
    return Problem(
        model=model or make_model(4),
        cluster=load_cluster("dgx-a100-80g", devices),
        workload=Workload(global_batch_size=batch, sequence_length=1024),
        constraints=Constraints(backends=(backend,)),
    )


def plan(devices: int, model: Any = None, backend: str = "any", **strategy: Any) -> Plan:
    chosen, _ = complete_strategy(strategy, devices, 48)
    return estimate(problem(devices, 48, model, backend), chosen)


def held_cells(layout: StateLayout, rank: int) -> dict[tuple[str, str], frozenset[tuple[int, int]]]:
    """Every fine cell of every piece that a rank holds, written out."""
    held, found = layout.held(), dict[tuple[str, str], frozenset[tuple[int, int]]]()
    for family in FAMILIES:
        cells = getattr(held, family)
        tall, wide = FINE // cells.rows, FINE // cells.columns
        rows = range(int(cells.row[rank]) * tall, (int(cells.row[rank]) + 1) * tall)
        columns = range(int(cells.column[rank]) * wide, (int(cells.column[rank]) + 1) * wide)
        fine = frozenset((row, column) for row in rows for column in columns)
        found |= {(name, family): fine for name in layout.stages[int(held.stage[rank])]}
    return found


CASES = [
    ((16, {"tp": 2, "pp": 2}), (8, {"tp": 2, "pp": 2}), list(range(8))),
    ((16, {"tp": 2, "pp": 2}), (8, {"tp": 4, "pp": 1}), list(range(8, 16))),
    ((8, {"tp": 1, "zero_stage": 0}), (16, {"tp": 2, "pp": 4}), [*range(8), *[None] * 8]),
    ((8, {"tp": 8}), (8, {"pp": 4, "vpp": 1}), list(range(8))),
]


@pytest.mark.parametrize(("old", "new", "origins"), CASES)
@pytest.mark.parametrize("model", [make_model(4), make_moe_model(4)], ids=["dense", "experts"])
def test_the_bytes_are_those_of_a_count(old: Any, new: Any, origins: list[int | None], model: Any) -> None:
    before, after = plan(old[0], model, **old[1]), plan(new[0], model, **new[1])
    answer = resharding(before, after, origins)
    old_layout, new_layout = state_layout(before), state_layout(after)
    each = {
        (name, family): getattr(piece, family) / FINE**2
        for name, piece in old_layout.pieces.items()
        for family in ("dense", "experts")
    }
    needed = kept = 0.0
    for rank, origin in enumerate(origins):
        wants = held_cells(new_layout, rank)
        has = {} if origin is None else held_cells(old_layout, origin)
        for key, cells in wants.items():
            needed += len(cells) * each[key]
            kept += len(cells & has.get(key, frozenset())) * each[key]
    everything: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for origin in origins:
        for key, cells in held_cells(old_layout, origin).items() if origin is not None else ():
            everything.setdefault(key, set()).update(cells)
    lost = sum((FINE**2 - len(everything.get(key, set()))) * size for key, size in each.items())
    assert answer.needed_bytes == pytest.approx(needed, rel=1e-9, abs=2)
    assert answer.kept_bytes == pytest.approx(kept, rel=1e-9, abs=2)
    assert answer.lost_bytes == pytest.approx(lost, rel=1e-9, abs=2)
    assert answer.moved_bytes == answer.needed_bytes - answer.kept_bytes
    told = [each.in_place_bytes + each.same_node_bytes + each.other_nodes_bytes for each in answer.reads]
    gone = sum(each.checkpoint_bytes for each in answer.reads)
    assert sum(told) + gone == pytest.approx(answer.needed_bytes, abs=100)
    assert (gone > 0) == (answer.lost_bytes > 0)


@pytest.mark.parametrize("model", [make_model(4), make_moe_model(4)], ids=["dense", "experts"])
def test_one_copy_is_every_parameter_once(model: Any) -> None:
    made = plan(8, model, tp=2, pp=2)
    layout = state_layout(made)
    bytes_each = optimizer_bytes(made.problem.workload)
    assert layout.total_bytes == pytest.approx(total_parameters(model) * bytes_each)
    # ZeRO keeps one copy over all ranks; without it there is one a replica.
    assert layout.bytes_by_rank().sum() == pytest.approx(layout.total_bytes)
    plain = state_layout(plan(8, model, tp=2, pp=2, zero_stage=0))
    copies = sum(piece.dense * 2 + piece.experts * plain.strategy.edp for piece in plain.pieces.values())
    assert plain.bytes_by_rank().sum() == pytest.approx(copies)


def test_nothing_moves_where_nothing_changes() -> None:
    made = plan(16, tp=2, pp=2)
    answer = resharding(made, made, list(range(16)))
    assert (answer.moved_bytes, answer.lost_bytes, answer.seconds) == (0, 0, 0.0)


def test_the_time_is_that_of_the_busiest_node() -> None:
    old, new = plan(8, tp=1), plan(16, tp=1)
    answer = resharding(old, new, [*range(8), *[None] * 8])
    pool = new.problem.cluster.pools[0]
    assert answer.seconds == answer.busiest_node_bytes / (pool.nics_per_node * pool.nic_bandwidth_bytes_per_s)
    # The new node has nothing and needs half of the one copy.
    assert answer.busiest_node_bytes == pytest.approx(answer.state_bytes / 2, rel=1e-6)


def test_a_replan_names_what_stays() -> None:
    made = plan(16, tp=1)
    fewer = replan(made, Lost(nodes=(0,)))
    assert (fewer.devices_before, fewer.devices_after, fewer.devices_kept) == (16, 8, 8)
    assert fewer.plan.problem.cluster.num_devices == 8
    assert {axis.axis: axis.kept for axis in fewer.axes}["dp_shard"] == (fewer.plan.strategy["dp_shard"] == 16)
    more = replan(made, Lost(devices=24))
    assert (more.devices_after, more.devices_kept) == (24, 16)
    assert more.resharding.lost_bytes == 0
    part = replan(made, Lost(devices=4))
    assert (part.devices_after, part.devices_kept) == (4, 4)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"devices": 8, "nodes": (0,)},
        {"nodes": (2,)},
        {"nodes": (0, 1)},
        {"nodes": ("gpu7",)},
        {"nodes": ("gpu7",), "names": ("gpu[0-1]",)},
        {"nodes": ("gpu1",), "names": ("gpu[0-2]",)},
        {"nodes": ("gpu1",), "names": ("gpu1,gpu1",)},
        {"single": ("0:8",)},
        {"single": ("0",)},
        {"num_nodes": 2},
    ],
)
def test_what_cannot_be_replanned(asked: dict[str, Any]) -> None:
    with pytest.raises(DocumentInvalid):
        replan(plan(16, tp=1), Lost(**asked))


def test_nodes_by_name_are_those_of_the_same_index() -> None:
    cluster = plan(16, tp=1).problem.cluster
    by_name = allocations(cluster, Lost(nodes=("gpu02",), names=("gpu[01-02]",)))
    assert by_name == allocations(cluster, Lost(nodes=(1,))) == allocations(cluster, Lost(nodes=("1",)))
    assert by_name[0].nodes == allocations(cluster, Lost(num_nodes=1))[0].nodes == (0,)


def test_a_node_that_lacks_a_device_is_left_out_or_all_use_as_many() -> None:
    parts, whole = allocations(plan(24, tp=1).problem.cluster, Lost(single=("1:2",)))
    assert (parts.cluster.num_devices, parts.devices_per_node, parts.used[1]) == (21, 7, (0, 1, 3, 4, 5, 6, 7))
    assert (whole.cluster.num_devices, whole.nodes, whole.left_out) == (16, (0, 2), (1,))
    assert parts.good_devices == whole.good_devices == 23
    assert parts.origins(8, 24)[7:14] == [8, 9, 11, 12, 13, 14, 15]
    # Of ten nodes the nine whole ones have more.
    (alone,) = allocations(problem(80).cluster, Lost(single=("9:0",)))
    assert (alone.cluster.num_devices, alone.left_out) == (72, (9,))


def test_the_kept_layout_holds_all_but_data_parallelism() -> None:
    made = plan(24, tp=2, pp=2)
    answer = replan(made, Lost(nodes=(0,)), Staying(prefer_layout="keep"))
    (kept,) = answer.options
    moved = {axis.axis for axis in kept.axes if not axis.kept}
    assert (moved, kept.layout_kept, kept.devices, kept.global_batch_size) == ({"dp_shard"}, False, 16, 48)
    assert [stage.chunks for stage in answer.plan.stages] == [stage.chunks for stage in made.stages]
    assert answer.break_even is None
    assert {change.keeps for change in kept.loss_changes} == {"up to rounding", "exactly"}


def test_the_batch_is_kept_before_devices_are() -> None:
    # dp 10 does not divide the batch of 48; 8 does.
    made = plan(24, tp=4, pp=1)
    whole = problem(40, 48)
    same = kept_layout(made, allocations(whole.cluster, Lost(devices=40)))
    near = kept_layout(made, allocations(whole.cluster, Lost(devices=40)), nearest_batch=True)
    assert same is not None
    assert near is not None
    assert (same.plan.strategy["dp"], same.plan.problem.workload.global_batch_size) == (8, 48)
    assert (near.plan.strategy["dp"], near.plan.problem.workload.global_batch_size) == (10, 50)


def test_the_faster_layout_waits_for_what_it_needs() -> None:
    equal = break_even(100.0, 1.0, 110.0, 12.0, 2.0, (3600.0, "given"))
    # 110 (H - 12) = 100 (H - 1)
    assert equal.seconds == pytest.approx((110 * 12 - 100) / 10)
    assert equal.steps == (122 - 12) / 2
    assert break_even(100.0, 1.0, 100.0, 1.0, 2.0, (float("inf"), "none")).seconds is None
    assert horizon(2.0, None, "H100", 8)[0] == 7200.0
    assert horizon(None, 1e-3, "H100", 8)[0] == pytest.approx(3600 / 8e-3)


@pytest.mark.parametrize(
    ("backend", "before", "after", "loads"),
    [
        ("megatron", {"pp": 2}, {"pp": 2}, "as it is"),
        ("megatron", {"pp": 2}, {"pp": 4}, "if saved so"),
        ("deepspeed", {"zero_stage": 2}, {"zero_stage": 2}, "once converted"),
        ("deepspeed", {"zero_stage": 2}, {"zero_stage": 3}, "no"),
        ("torchtitan", {"zero_stage": 3}, {"zero_stage": 3}, "as it is"),
        ("native", {"pp": 2}, {"pp": 2}, "no"),
    ],
)
def test_what_a_checkpoint_becomes(backend: str, before: Any, after: Any, loads: str) -> None:
    old, new = (plan(count, backend="unrestricted", **said) for count, said in ((16, before), (8, after)))
    old, new = (each.model_copy(update={"backend": backend, "release": ""}) for each in (old, new))
    use = checkpoint_use(old, new)
    assert use.loads == loads
    assert bool(use.source) == (use.format is not None)
    if loads == "once converted":
        assert "ds_to_universal" in use.steps[0]


def test_every_source_names_a_commit() -> None:
    for each in backends().values():
        sources = [way.source for made in each.resuming.formats for way in made.ways]
        sources += [effect.source for effect in each.resuming.effects]
        assert all(re.search(r" [0-9a-f]{8} ", source) for source in sources), each.name


def test_dropout_makes_a_change_of_ranks_another_curve() -> None:
    old, new = plan(16, tp=2, pp=2), plan(8, tp=4, pp=1)
    assert keeps_curve(loss_changes(old, new)) == "up to rounding"
    workload = old.problem.workload.model_copy(update={"dropout": True})
    wet = old.model_copy(update={"problem": old.problem.model_copy(update={"workload": workload})})
    wet = wet.model_copy(update={"backend": "megatron", "release": ""})
    assert keeps_curve(loss_changes(wet, new)) == "no"
    assert loss_changes(old, old) == ()


def test_a_kept_layout_is_read_back_as_it_is_and_stands_the_check() -> None:
    answer = replan(plan(24, tp=2, pp=2), Lost(nodes=(0,)), Staying(prefer_layout="keep"))
    again = Replan.model_validate_json(answer.canonical_json())
    assert again == answer
    assert again.plan.plan_id == answer.new_plan_id
    assert 0 < (answer.options[0].lower_bound_s or 0) <= answer.plan.step_time_s
    recheck_plan(answer.plan, answer.plan.problem)
