"""The most activations that a rank of a pipeline holds at once, without running the order."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from planner.errors import DocumentInvalid
from planner.strategy.schedules import ScheduleName
from solver.arrays import Ints


def in_flight_chunks(
    schedule: str,
    num_stages: ArrayLike,
    vpp: ArrayLike,
    num_microbatches: ArrayLike,
    microbatch_group_size: ArrayLike,
    stage: ArrayLike,
) -> Ints:
    """Most chunk activations that rank ``stage`` holds at once (born at the forward, dead after B, or W where split).

    gpipe m; 1f1b min(m, p-r); interleaved min(2(p-1-r) + (v-1)g + 1, m v) (arXiv 2104.04473, Megatron-LM group size);
    zb_h1 min(m, p); zbv min(2p, 2m, m+1+r); dualpipev 2p+1; looped_bfs m v; interleaved_zb
    min((v-1)g + p, m v).  Exact for every legal size: equal to the simulator's peak
    (tests/oracle/test_in_flight.py).
    """
    p, v, m, g, r = (np.asarray(x, np.int64) for x in (num_stages, vpp, num_microbatches, microbatch_group_size, stage))
    match schedule:
        case "gpipe":
            peak = m + 0 * r
        case "1f1b":
            peak = np.minimum(m, p - r)
        case "interleaved":
            peak = np.minimum(2 * (p - 1 - r) + (v - 1) * np.where(g == 0, p, g) + 1, m * v)
        case "zb_h1":
            peak = np.minimum(m, p) + 0 * r
        case "zbv":
            peak = np.minimum(np.minimum(2 * p, 2 * m), m + 1 + r)
        case "dualpipev":
            peak = 2 * p + 1 + 0 * (m + r)
        case "looped_bfs":
            peak = m * v + 0 * r
        case "interleaved_zb":
            peak = np.minimum((v - 1) * np.where(g == 0, p, g) + p, m * v) + 0 * r
        case _:
            known = ", ".join(get_args(ScheduleName))
            raise DocumentInvalid(f"unknown schedule {schedule!r}; known: {known}", where="strategy#/schedule")
    return np.asarray(peak, dtype=np.int64)[()]
