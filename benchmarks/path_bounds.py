"""How far the known paths of an order lie below the simulated step; none may lie above it.

    python -m benchmarks.path_bounds --instances 100000 --write

For each schedule random instances: p 2 to 12 stages, v 2 to 4 chunks a device where it has several, p to 8 p
micro-batches; ``DRAWS`` pipelines of each size, a third with equal chunks, a third with chunks in 1 +- 10 %, a third in
1 +- 30 %; hops 0 to 5 % of a chunk; a backward pass 1 to 3 times its forward, half of it or less in weight gradients.
Two bounds: ``paths``, the longest of ``known_paths``, and ``least``, what ``least_makespan_s`` knows of the sums alone.
A bound above the simulated step ends the run with an error.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from planner.predict.schedule.least_makespan import least_makespan_s
from planner.predict.schedule.orders import order_findings
from planner.predict.schedule.paths import ChunkTimes
from planner.predict.schedule.run import known_paths, run_pipeline
from planner.strategy.schedules import LOOPED_SCHEDULES, SPLIT_SCHEDULES, V_SCHEDULES, ScheduleName, chunk_stages

Array = NDArray[np.float64]
Sizes = tuple[int, int, int, int]

DRAWS = 48
SPREADS = (0.0, 0.1, 0.3)
TOLERANCE = 1e-9
RESULT = Path(__file__).parent / "tables" / "path-bounds.json"


def main() -> None:
    """Measure every schedule and print, or write, the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=100_000, help="of each schedule")
    parser.add_argument("--write", action="store_true", help=f"keep the result in {RESULT}")
    asked = parser.parse_args()
    found = {schedule: measure(schedule, asked.instances) for schedule in get_args(ScheduleName)}
    text = json.dumps({"instances": asked.instances, "below the simulated step": found}, indent=2)
    print(text)
    if asked.write:
        RESULT.write_text(text + "\n")


def measure(schedule: ScheduleName, instances: int, seed: int = 0) -> dict[str, dict[str, float]]:
    """Median and 99th percentile of 1 - bound / simulated, by bound and spread of the chunks.  Raises ValueError."""
    draw = np.random.default_rng(seed)
    short: dict[str, list[Array]] = defaultdict(list)
    done = 0
    while done < instances:
        sizes = _sizes(schedule, draw)
        for spread in SPREADS:
            for name, ratios in _ratios(schedule, sizes, spread, DRAWS // len(SPREADS), draw).items():
                if ratios.max() > 1 + TOLERANCE:
                    raise ValueError(f"{name} is above the simulated step of {schedule} {sizes}: {ratios.max()}")
                short[f"{name}, chunks in 1 +- {spread:.0%}"].append(1.0 - ratios)
        done += DRAWS
    return {
        name: {"median": _rounded(np.median(all_)), "99 %": _rounded(np.quantile(all_, 0.99))}
        for name, all_ in ((name, np.concatenate(parts)) for name, parts in short.items())
    }


def _sizes(schedule: ScheduleName, draw: np.random.Generator) -> Sizes:
    while True:
        p = int(draw.integers(2, 13))
        v = 2 if schedule in V_SCHEDULES else int(draw.integers(2, 5)) if schedule in LOOPED_SCHEDULES else 1
        m = int(draw.integers(p, 8 * p + 1))
        if not order_findings(schedule, p, v, m, 0):
            return p, v, m, 0


def _ratios(
    schedule: ScheduleName, sizes: Sizes, spread: float, count: int, draw: np.random.Generator
) -> dict[str, Array]:
    """Both bounds over the simulated step of ``count`` pipelines."""
    p, v, m, _ = sizes
    chunks = p * v
    forward_s = draw.uniform(1 - spread, 1 + spread, (count, chunks))
    backward_s = forward_s * draw.uniform(1.0, 3.0, (count, 1))
    gradient_s = backward_s * draw.uniform(0.0, 0.5, (count, 1))
    hop_s = draw.uniform(0.0, 0.05, count) * (forward_s + backward_s).mean(axis=1)
    ran_s = np.array(
        [
            run_pipeline(
                schedule, sizes, ChunkTimes(forward_s[at], backward_s[at], gradient_s[at]), hop_s[at]
            ).makespan_s
            for at in range(count)
        ]
    )
    paths = known_paths(schedule, sizes)
    lengths = (
        forward_s @ np.stack([path.forwards for path in paths]).T
        + backward_s @ np.stack([path.backwards for path in paths]).T
        + gradient_s @ np.stack([path.weight_gradients for path in paths]).T
        + hop_s[:, None] * np.array([path.hops for path in paths])
    )
    ranks = np.array(chunk_stages(p, v, v_placed=schedule in V_SCHEDULES))
    busy_s = np.stack([np.bincount(ranks, row) for row in forward_s + backward_s])
    way_s = forward_s + (0.0 if schedule in SPLIT_SCHEDULES else 1.0) * backward_s
    seconds = busy_s.sum(axis=1), busy_s.max(axis=1), hop_s, way_s[:, 1:p].min(axis=1), gradient_s.sum(axis=1)
    least_s = least_makespan_s(schedule, np.full(count, m), np.full(count, p), seconds)
    return {"paths": lengths.max(axis=1) / ran_s, "least": least_s / ran_s}


def _rounded(value: np.floating) -> float:
    return round(float(value), 5)


if __name__ == "__main__":
    main()
