"""The plan is the optimum also where embedding and head are chunks of their own: against trying everything.

Models of few layers and large vocabularies, in back-ends that leave the first and the last chunk without a layer, with
so many chunks that the ends must be empty or gain from it.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from planner.errors import NoFeasiblePlan
from planner.plan.plan import Plan
from planner.question.problem import UNRESTRICTED, Constraints, Problem
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.recheck import recheck_plan
from tests.exhaustive_search import exhaustive_best
from tests.sampling import drawn
from tests.search_problems import Pin, Size, random_problem

SIZE = Size(max_devices=8, max_layers=6, max_batch=12, narrowings=1)
QUICK = SearchOptions(top_k=0)
# Of each matrix some where an end holds no layer, with one chunk a device and with several.
EMPTY_ENDS = (7007, 7008, 7027, 7031, 7036, 7038, 7043)
MORE_EMPTY_ENDS = (8009, 8013, 8089, 8092)


def _problem(seed: int) -> Problem:
    """A random problem with a heavier vocabulary, held to a pipeline."""
    draw = random.Random(seed)
    backend = draw.choice([UNRESTRICTED, "megatron", "megatron"])
    problem = random_problem(seed, SIZE, backend)
    devices = problem.cluster.num_devices
    pp = draw.choice([count for count in (2, 3, 4, 6, 8) if devices % count == 0] or [1])
    pins: dict[str, Pin] = {"pp": pp, "tp": 1, "cp": 1, "zero_stage": draw.choice([0, 1])}
    if draw.random() < 0.5:
        pins["recompute"] = draw.choice(["none", "full"])
    if backend == UNRESTRICTED:
        pins["schedule"] = draw.choice(["1f1b", "interleaved", "zb_h1", "zbv", "looped_bfs"]) if pp > 1 else "1f1b"
    vocabulary = draw.choice([32_000, 128_000, 512_000])
    return problem.model_copy(
        update={
            "model": problem.model.model_copy(update={"vocab_size": vocabulary}),
            "constraints": Constraints(backends=(backend,), pins=pins),
        }
    )


def _empty(plan: Plan) -> str:
    """Which of the ends hold no layer, and whether a device holds several chunks."""
    chunks = sorted((chunk for stage in plan.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    assert all(chunk.num_layers for chunk in chunks[1:-1])
    ends = "".join(name for name, chunk in (("E", chunks[0]), ("L", chunks[-1])) if not chunk.num_layers)
    return f"{ends}{' several' if plan.strategy['vpp'] > 1 else ''}" if ends else ""


def _agree(seed: int) -> str | None:
    """Which ends of the plan are empty, None without a plan; fails where trying everything says otherwise."""
    problem = _problem(seed)
    best, _ = exhaustive_best(problem)
    try:
        plan = find_plan(problem, QUICK)
    except NoFeasiblePlan:
        assert best is None, f"a plan was missed: {best}"
        return None
    assert best is not None
    assert plan.status == "optimal"
    assert plan.step_time_s == pytest.approx(best.step_time_s, rel=1e-9), best
    recheck_plan(plan, problem)
    return _empty(plan)


def test_nothing_beats_the_plan_where_ends_may_be_empty() -> None:
    found = Counter(_agree(seed) for seed in drawn(range(7000, 7060), 12, kept=EMPTY_ENDS))
    assert found["L"] >= 3, found
    assert found["EL several"] + found["L several"] + found["E several"] >= 3, found


@pytest.mark.slow
def test_nothing_beats_the_plan_of_many_questions_where_ends_may_be_empty() -> None:
    seeds = drawn(range(8000, 8400), 12, kept=MORE_EMPTY_ENDS)
    found = Counter(_agree(seed) for seed in seeds)
    assert sum(count for name, count in found.items() if name) >= len(seeds) // 10, found
