"""What moves when devices come and go: against a count of every parameter's holders, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from planner.answers.replan.layout import area, overlap, state_layout
from planner.answers.replan.replan import replan
from planner.answers.replan.resharding import resharding
from planner.errors import DocumentInvalid
from planner.model.parameters import total_parameters
from planner.plan.plan import Plan
from planner.predict.memory.states import optimizer_bytes
from planner.question.problem import Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.text import complete_strategy
from profiles.catalogue import load_cluster
from tests.plan_factory import make_model, make_moe_model

FINE = 48
"""Cells a side of the grid on which the count is done: every degree used here divides it."""


def plan(devices: int, model: Any = None, **strategy: Any) -> Plan:
    problem = Problem(
        model=model or make_model(4),
        cluster=load_cluster("dgx-a100-80g", devices),
        workload=Workload(global_batch_size=48, sequence_length=1024),
    )
    chosen, _ = complete_strategy(strategy, devices, 48)
    return estimate(problem, chosen)


def held_cells(layout: Any, rank: int) -> dict[tuple[str, str], frozenset[tuple[int, int]]]:
    """Every fine cell of every piece that a rank holds, written out."""
    held = layout.held(rank)

    def cells(cell: Any) -> frozenset[tuple[int, int]]:
        (a, b), (c, d) = cell
        rows = range(round(a * FINE), round(b * FINE))
        columns = range(round(c * FINE), round(d * FINE))
        return frozenset((row, column) for row in rows for column in columns)

    dense, experts = cells(held.dense), cells(held.experts)
    names = layout.stages[held.stage]
    return {**{(name, "dense"): dense for name in names}, **{(name, "experts"): experts for name in names}}


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


@pytest.mark.parametrize("model", [make_model(4), make_moe_model(4)], ids=["dense", "experts"])
def test_one_copy_is_every_parameter_once(model: Any) -> None:
    made = plan(8, model, tp=2, pp=2)
    layout = state_layout(made)
    bytes_each = optimizer_bytes(made.problem.workload)
    assert layout.total_bytes == pytest.approx(total_parameters(model) * bytes_each)
    # ZeRO keeps one copy over all ranks; without it there is one a replica.
    assert sum(layout.bytes_of(layout.held(rank)) for rank in range(8)) == pytest.approx(layout.total_bytes)
    plain = state_layout(plan(8, model, tp=2, pp=2, zero_stage=0))
    copies = sum(piece.dense * 2 + piece.experts * plain.strategy.edp for piece in plain.pieces.values())
    assert sum(plain.bytes_of(plain.held(rank)) for rank in range(8)) == pytest.approx(copies)


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
    fewer = replan(made, lost_nodes=[0])
    assert (fewer.devices_before, fewer.devices_after, fewer.devices_kept) == (16, 8, 8)
    assert fewer.plan.problem.cluster.num_devices == 8
    assert {axis.axis: axis.kept for axis in fewer.axes}["dp_shard"] == (fewer.plan.strategy["dp_shard"] == 16)
    more = replan(made, num_devices=24)
    assert (more.devices_after, more.devices_kept) == (24, 16)
    assert more.resharding.lost_bytes == 0
    part = replan(made, num_devices=4)
    assert (part.devices_after, part.devices_kept) == (4, 4)


@pytest.mark.parametrize(
    "asked", [{}, {"num_devices": 8, "lost_nodes": [0]}, {"lost_nodes": [2]}, {"lost_nodes": [0, 1]}]
)
def test_what_cannot_be_replanned(asked: dict[str, Any]) -> None:
    with pytest.raises(DocumentInvalid):
        replan(plan(16, tp=1), **asked)


def test_cells_overlap_as_areas_do() -> None:
    cell = ((0.0, 0.5), (0.25, 0.75))
    assert (area(cell), overlap(cell, cell)) == (0.25, 0.25)
    assert overlap(cell, ((0.5, 1.0), (0.0, 1.0))) == 0.0
    assert overlap(cell, ((0.25, 1.0), (0.5, 1.0))) == pytest.approx(0.0625)
