"""The closed form of in-flight activations equals the simulator's peak, for every rank and size."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import DocumentInvalid
from planner.predict.schedule.in_flight import in_flight_chunks
from planner.predict.schedule.orders import order_findings
from planner.predict.schedule.simulate import simulate
from planner.strategy.schedules import GROUPED_SCHEDULES, ScheduleName
from tests.order_graphs import cached_graph

SCHEDULES: list[tuple[ScheduleName, int]] = [
    ("gpipe", 1),
    ("1f1b", 1),
    ("interleaved", 2),
    ("interleaved", 3),
    ("interleaved", 5),
    ("zb_h1", 1),
    ("zbv", 2),
    ("dualpipev", 2),
    ("looped_bfs", 2),
    ("looped_bfs", 3),
    ("interleaved_zb", 2),
    ("interleaved_zb", 3),
    ("interleaved_zb", 5),
]


@pytest.mark.parametrize(("schedule", "vpp"), SCHEDULES)
def test_equals_the_peak_of_the_order(schedule: ScheduleName, vpp: int) -> None:
    checked = 0
    for p in (1, 2, 3, 4, 5, 8):
        for m in (*range(1, 2 * p + 3), 3 * p, 4 * p + 1):
            for g in (p, p + 1, 2 * p - 1, 2 * p, m) if schedule in GROUPED_SCHEDULES else (0,):
                if order_findings(schedule, p, vpp, m, g):
                    continue
                ran = simulate(cached_graph(schedule, p, vpp, m, g), 1.0, 2.0, 1.0)
                formula = in_flight_chunks(schedule, p, vpp, m, g, np.arange(p))
                assert formula.tolist() == ran.peak_in_flight.tolist(), (p, m, g)
                checked += 1
    assert checked >= 30


@pytest.mark.parametrize(
    ("schedule", "vpp"), [("1f1b", 1), ("zb_h1", 1), ("zbv", 2), ("dualpipev", 2), ("interleaved", 2)]
)
def test_equals_the_peak_of_a_deep_pipeline(schedule: ScheduleName, vpp: int) -> None:
    graph = cached_graph(schedule, 32, vpp, 96, 0)
    formula = in_flight_chunks(schedule, 32, vpp, 96, 0, np.arange(32))
    assert formula.tolist() == graph.peak_in_flight_by_rank().tolist()


def test_peak_by_chunk_bounds_the_peak_by_rank() -> None:
    graph = cached_graph("zbv", 4, 2, 16)
    by_chunk = graph.peak_in_flight_by_chunk()
    # Chunk c holds a micro-batch until it has gone to the last chunk and back: 2p - c of them are on their way.
    assert by_chunk.tolist() == [8, 7, 6, 5, 4, 3, 2, 1]
    for rank in range(4):
        together = int(graph.peak_in_flight_by_rank()[rank])
        assert max(by_chunk[rank], by_chunk[7 - rank]) <= together <= by_chunk[rank] + by_chunk[7 - rank]


def test_unknown_schedule_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="known: gpipe"):
        in_flight_chunks("bpipe", 4, 1, 8, 0, 0)
