"""The time in which 512 nodes are allocated to 100 jobs, for the sum of speeds and for the least one.

4,096 devices in nodes of 8, 16 blocks of 32 nodes; each job has up to 11 sizes between 1 and 64 nodes, concave speeds
with noise of 3 %, weights 1 to 4, and lies in as few blocks as its nodes need.  The tables are drawn from a seed, so
that only the solver is measured.
"""

from __future__ import annotations

import random
import time

from benchmarks.measurement import Measurement, Spec
from solver.fleet.share import Shared, share_fleet
from solver.fleet.tables import Choice, FleetTables, Goal

JOBS, BLOCKS, BLOCK_NODES = 100, 16, 32
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
TARGET_S = 10.0
LARGEST_GAP = 0.01


def drawn_fleet(seed: int) -> tuple[FleetTables, dict[str, tuple[Goal, ...]]]:
    """The tables, and the goals of two objectives."""
    draw = random.Random(seed)
    jobs, values = [], []
    for _ in range(JOBS):
        low, high = draw.choice((1, 1, 2, 4)), draw.choice((8, 16, 32, 64))
        sizes = [size for size in SIZES if low <= size <= high]
        weight, power = draw.choice((1, 1, 2, 4)), draw.uniform(0.6, 0.97)
        jobs.append(tuple(Choice(0, size, -(-size // BLOCK_NODES)) for size in sizes))
        most = sizes[-1] ** power
        values.append(tuple(weight * size**power / most * draw.uniform(0.97, 1.0) for size in sizes))
    tables = FleetTables(((BLOCK_NODES,) * BLOCKS,), tuple(jobs), (False,) * JOBS, ({},) * JOBS)
    run = Goal("jobs that run", "sum", tuple(tuple(1.0 for _ in each) for each in values))
    total, least = Goal("speed", "sum", tuple(values)), Goal("least speed", "least", tuple(values))
    return tables, {"throughput": (total,), "fairness": (run, least, total)}


def allocations(repeats: int) -> list[Measurement]:
    """Seconds of an allocation with its placement, checked, for each objective."""
    tables, objectives = drawn_fleet(0)
    return [_measured(name, tables, goals, repeats) for name, goals in objectives.items()]


def _measured(name: str, tables: FleetTables, goals: tuple[Goal, ...], repeats: int) -> Measurement:
    share_fleet(tables, goals, time_limit_s=TARGET_S)  # the import of OR-Tools is not measured
    samples, cpu_s, answer = [], [], ""
    for _ in range(repeats):
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        answer = _answer(share_fleet(tables, goals, time_limit_s=TARGET_S))
        samples.append(time.perf_counter() - start_s)
        cpu_s.append(time.process_time() - start_cpu_s)
    task = f"512 nodes of 8 devices allocated to 100 jobs, {name}, gap at most 1 %"
    return Measurement(f"fleet-{name}", task, "s", TARGET_S, tuple(samples), tuple(cpu_s), details={"answer": answer})


def _answer(shared: Shared) -> str:
    widest = max(each.gap for each in shared.allocation.reached)
    if widest > LARGEST_GAP:
        raise RuntimeError(f"the gap is {widest:.2%}")
    placed = shared.placement
    return f"gap {widest:.1e}, {placed.touched} pieces of blocks, at least {placed.least_touched}"


FLEET_ALLOCATION = Spec("fleet-allocation", allocations)
