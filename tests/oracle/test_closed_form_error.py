"""How far are the closed forms from the simulator when stages are uneven?  A table, and bounds on it.

Run ``pytest -s`` to see it.  Every chunk is drawn on its own in 1 +- u (F, I and W equal parts of it), hops are c
of the mean stage time, p in 2..16, m in p..8p, g in {p, 2p}; error = formula / simulator - 1.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.schedule.closed_form import pipeline_makespan_s
from planner.schedule.dependencies import cached_graph
from planner.schedule.orders import order_findings
from planner.schedule.placement import chunk_ranks
from planner.schedule.simulate import simulate
from planner.strategy import GROUPED_SCHEDULES, ScheduleName

CASES: list[tuple[ScheduleName, int]] = [
    ("gpipe", 1),
    ("1f1b", 1),
    ("interleaved", 2),
    ("interleaved", 4),
    ("zb_h1", 1),
    ("zbv", 2),
    ("dualpipev", 2),
    ("looped_bfs", 2),
    ("looped_bfs", 4),
    ("interleaved_zb", 2),
    ("interleaved_zb", 4),
]
# (median, largest) absolute error allowed, in per cent, by unevenness; measured values sit at about 2/3 of these.
ALLOWED: dict[tuple[str, float], tuple[float, float]] = {
    ("gpipe", 0.1): (1e-9, 1e-9),
    ("gpipe", 0.3): (1e-9, 1e-9),
    ("1f1b", 0.1): (1.0, 9.0),
    ("1f1b", 0.3): (2.6, 24.0),
    ("interleaved", 0.1): (2.0, 9.0),
    ("interleaved", 0.3): (3.5, 20.0),
    ("zb_h1", 0.1): (0.6, 5.0),
    ("zb_h1", 0.3): (1.5, 9.0),
    ("zbv", 0.1): (1.0, 8.0),
    ("zbv", 0.3): (1.8, 13.0),
    ("dualpipev", 0.1): (1.6, 8.0),
    ("dualpipev", 0.3): (1.8, 11.0),
    ("looped_bfs", 0.1): (2.0, 9.0),
    ("looped_bfs", 0.3): (5.5, 20.0),
    ("interleaved_zb", 0.1): (2.0, 9.0),
    ("interleaved_zb", 0.3): (3.5, 20.0),
}


def errors_percent(schedule: ScheduleName, v: int, unevenness: float, hop: float, draws: int) -> NDArray[np.float64]:
    """Signed errors over the grid of sizes."""
    random = np.random.default_rng(7)
    errors = []
    for p in (2, 3, 4, 8, 16):
        ranks = np.array(chunk_ranks(schedule, p, v))
        for m in (p, 2 * p, 3 * p, 8 * p):
            for g in (p, 2 * p) if schedule in GROUPED_SCHEDULES else (0,):
                if order_findings(schedule, p, v, m, g):
                    continue
                graph = cached_graph(schedule, p, v, m, g)
                for _ in range(draws):
                    part = (1 + random.uniform(-unevenness, unevenness, p * v)) / v / 3
                    ran = simulate(graph, part, 2 * part, part, send_s=hop).makespan_s
                    stage = np.bincount(ranks, 3 * part, p)
                    formula = pipeline_makespan_s(schedule, m, p, v, g, stage.sum(), stage.max(), part.sum(), hop)
                    errors.append(100 * (float(formula) / ran - 1))
    return np.array(errors)


@pytest.mark.parametrize(("schedule", "vpp"), CASES)
@pytest.mark.parametrize("unevenness", [0.1, 0.3])
def test_error_is_bounded(schedule: ScheduleName, vpp: int, unevenness: float) -> None:
    median, largest = ALLOWED[schedule, unevenness]
    for hop in (0.0, 0.01, 0.05):
        errors = errors_percent(schedule, vpp, unevenness, hop, draws=2)
        size = np.abs(errors)
        print(
            f"\n{schedule:11s} v={vpp} +-{unevenness:.0%} hop {hop:.0%}: median |e| {np.median(size):5.2f} %  "
            f"max |e| {size.max():5.2f} %  bias {np.median(errors):+5.2f} %",
            end="",
        )
        assert float(np.median(size)) <= median
        assert float(size.max()) <= largest
