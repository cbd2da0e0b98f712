"""The orders are complete, legal, and refused where the sizes are impossible."""

from __future__ import annotations

import pytest

from planner.errors import DocumentInvalid
from planner.predict.schedule.action import Action, Kind
from planner.predict.schedule.orders import build_order
from planner.strategy.schedules import V_SCHEDULES, ScheduleName, chunk_stages
from planner.strategy.strategy import Strategy

SIZES: list[tuple[ScheduleName, int, int, int, int]] = [
    ("gpipe", 3, 1, 5, 0),
    ("1f1b", 4, 1, 2, 0),
    ("1f1b", 4, 1, 9, 0),
    ("interleaved", 4, 3, 9, 5),
    ("interleaved", 4, 2, 16, 8),
    ("zb_h1", 5, 1, 3, 0),
    ("zb_h1", 4, 1, 12, 0),
    ("zbv", 4, 2, 3, 0),
    ("zbv", 4, 2, 17, 0),
    ("dualpipev", 4, 2, 9, 0),
    ("looped_bfs", 4, 3, 2, 0),
    ("looped_bfs", 3, 2, 7, 0),
    ("interleaved_zb", 4, 3, 9, 5),
    ("interleaved_zb", 4, 2, 16, 8),
]


@pytest.mark.parametrize(("schedule", "num_stages", "vpp", "num_microbatches", "group"), SIZES)
def test_every_chunk_runs_every_microbatch_once_on_its_rank(
    schedule: ScheduleName, num_stages: int, vpp: int, num_microbatches: int, group: int
) -> None:
    order = build_order(schedule, num_stages, vpp, num_microbatches, group)
    ranks = chunk_stages(num_stages, vpp, v_placed=schedule in V_SCHEDULES)
    halves = {
        Kind.FORWARD: (Kind.FORWARD,),
        Kind.BACKWARD: (Kind.INPUT_GRADIENT, Kind.WEIGHT_GRADIENT),
        Kind.INPUT_GRADIENT: (Kind.INPUT_GRADIENT,),
        Kind.WEIGHT_GRADIENT: (Kind.WEIGHT_GRADIENT,),
    }
    for rank, actions in enumerate(order):
        done = [(kind, a.chunk, a.microbatch) for a in actions for kind in halves[a.kind]]
        wanted = {
            (kind, chunk, microbatch)
            for kind in (Kind.FORWARD, Kind.INPUT_GRADIENT, Kind.WEIGHT_GRADIENT)
            for chunk in range(num_stages * vpp)
            for microbatch in range(num_microbatches)
            if ranks[chunk] == rank
        }
        assert len(done) == len(set(done))
        assert set(done) == wanted


@pytest.mark.parametrize(("schedule", "num_stages", "vpp", "num_microbatches", "group"), SIZES)
def test_placement_agrees_with_the_strategy(
    schedule: ScheduleName, num_stages: int, vpp: int, num_microbatches: int, group: int
) -> None:
    strategy = Strategy(pp=num_stages, vpp=vpp, schedule=schedule)
    assert chunk_stages(num_stages, vpp, v_placed=schedule in V_SCHEDULES) == tuple(
        map(strategy.chunk_stage, range(num_stages * vpp))
    )


def test_last_microbatch_group_takes_what_is_left() -> None:
    # Megatron-LM get_schedule_table: 9 micro-batches in groups of 5, two chunks.
    expected = [(0, m) for m in range(5)] + [(1, m) for m in range(5)]
    expected += [(0, m) for m in range(5, 9)] + [(1, m) for m in range(5, 9)]
    forwards = [
        (a.chunk // 2, a.microbatch) for a in build_order("interleaved", 2, 2, 9, 5)[1] if a.kind is Kind.FORWARD
    ]
    assert forwards == expected


def test_interleaved_last_rank_has_no_hop_to_wait_for() -> None:
    last = build_order("interleaved", 2, 2, 2, 2)[1]
    f, b = Kind.FORWARD, Kind.BACKWARD
    assert last == (
        Action(f, 1, 0),
        Action(f, 1, 1),
        Action(f, 3, 0),
        Action(b, 3, 0),
        Action(f, 3, 1),
        Action(b, 3, 1),
        Action(b, 1, 0),
        Action(b, 1, 1),
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("1f2b", 4, 1, 8, 0), ["unknown schedule '1f2b'", "zb_h1"]),
        (("1f1b", 0, 1, 0, 0), ["pp is 0", "num_microbatches is 0"]),
        (("gpipe", 2, 2, 4, 0), ["vpp is 2, gpipe needs exactly 1"]),
        (("1f1b", 2, 1, 4, 3), ["only interleaved and interleaved_zb have one"]),
        (("interleaved", 1, 1, 8, 8), ["pp is 1", "vpp is 1"]),
        (("interleaved", 4, 2, 8, 3), ["must lie in [pp, num_microbatches] = [4, 8]"]),
        (("interleaved", 4, 2, 3, 0), ["must lie in"]),
        (("interleaved", 4, 2, 10, 0), ["the last micro-batch group has 2 of 4"]),
        (("zbv", 4, 1, 8, 0), ["zbv needs exactly 2"]),
        (("dualpipev", 4, 3, 7, 0), ["dualpipev needs exactly 2", "at least 2*pp = 8"]),
        (("interleaved", 4, 2, 8, -1), ["must not be negative"]),
        (("looped_bfs", 4, 1, 8, 4), ["vpp is 1, looped_bfs needs at least 2", "only interleaved and interleaved_zb"]),
        (("interleaved_zb", 4, 2, 10, 4), ["the last micro-batch group has 2 of 4"]),
    ],
)
def test_impossible_sizes_are_refused_with_all_findings(
    arguments: tuple[ScheduleName, int, int, int, int], words: list[str]
) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        build_order(*arguments)
    for word in words:
        assert word in str(caught.value)
