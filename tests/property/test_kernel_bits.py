"""A kernel's kept machine code gives the same bits as Numba's own call.

Orders, pipelines and selection problems of random sizes are worked out, and every call that reaches a kernel is made a
second time through Numba, on copies of the same arguments.
"""

from __future__ import annotations

import sys
from random import Random
from typing import Any, get_args

import numpy as np
import pytest

from planner.predict.schedule.orders import order_findings
from planner.predict.schedule.orders.build import order_arrays
from planner.predict.schedule.paths import ChunkTimes, paths_of_ranks
from planner.predict.schedule.run import known_paths, run_pipeline
from planner.search.find import find_plan
from planner.shard.integer_lists import integer_lists
from planner.strategy.schedules import GROUPED_SCHEDULES, LOOPED_SCHEDULES, V_SCHEDULES, ScheduleName
from solver.selection.kernel import Kernel
from solver.selection.problem import SelectionProblem
from solver.selection.solve import solve
from solver.stage_partition import partition
from tests.oracle.test_selection_exhaustive import dense_problem, random_problem
from tests.oracle.test_solver_partition import random_objective, random_tables
from tests.property.test_dealt_bounds import DEEP
from tests.sampling import runs_whole
from tests.search_problems import random_problem as random_problem_of_plans
from tests.unit.planner.test_line_dealings import random_line
from tests.unit.solver.test_selection_solve import grid_problem

pytestmark = pytest.mark.slow


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often each kernel was called and compared."""
    calls: dict[str, int] = {}
    for cached in (order_arrays, paths_of_ranks, known_paths):
        cached.cache_clear()

    def both(kernel: Kernel, *arguments: Any) -> Any:
        again = [_copy(each) for each in arguments]
        result = kernel.load()(*arguments)
        assert _bits(kernel.compiled(*again)) == _bits(result)
        assert [_bits(each) for each in again] == [_bits(each) for each in arguments]
        name = kernel.function.__name__
        calls[name] = calls.get(name, 0) + 1
        return result

    monkeypatch.setattr(Kernel, "__call__", both)
    return calls


def _copy(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)(*map(_copy, value))
    return value.copy() if isinstance(value, np.ndarray) and value.flags.writeable else value


def _bits(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_bits(each) for each in value]
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    return type(value), value.hex() if isinstance(value, float) else value


def _kernels(package: str) -> set[str]:
    """Names of the kernels of a package, without those that only other kernels call."""
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith(package)]
    kernels = [value for module in modules for value in module.values() if isinstance(value, Kernel)]
    parts = {name for each in kernels for name in each.function.__code__.co_names}
    return {each.function.__name__ for each in kernels} - parts


def test_of_the_planner(compared: dict[str, int]) -> None:
    random = np.random.default_rng(7)
    schedules: tuple[ScheduleName, ...] = get_args(ScheduleName)
    for schedule in (20 if runs_whole() else 8) * schedules:
        p = int(random.integers(2, 9))
        v = 2 if schedule in V_SCHEDULES else int(random.integers(2, 5)) if schedule in LOOPED_SCHEDULES else 1
        m, g = int(random.integers(1, 5 * p)), p + 1 if schedule in GROUPED_SCHEDULES else 0
        if order_findings(schedule, p, v, m, g):
            m, g = 2 * p, 0
        forward_s = random.uniform(0.1, 1.0, p * v)
        times = ChunkTimes(forward_s, forward_s * random.uniform(1.5, 2.5), forward_s * random.uniform(0.2, 0.9))
        run_pipeline(schedule, (p, v, m, g), times, random.uniform(0.0, 0.1)).longest_path()
        paths_of_ranks(schedule, (p, v, m, g))
    for text in (b"[[1, 2], [-3], []]", b"[[1.5]]", b"[]", b"[[999999999999999999]]"):
        integer_lists(text)
    for seed in range(20):
        line = random_line(Random(seed))
        line.least_values(np.array([0, 1]), np.array([0, 2]), np.array([3, len(line.kinds)]))
    find_plan(random_problem_of_plans(4010, DEEP, "megatron"))
    assert sorted(_kernels("planner.") - set(compared)) == []


def test_of_the_solver(compared: dict[str, int]) -> None:
    problems: list[SelectionProblem] = [
        *(random_problem(seed) for seed in range(20)),
        *(dense_problem(seed) for seed in range(10)),
        grid_problem(1, width=10),
    ]
    for problem in problems:
        solve(problem, time_limit_s=10.0, threads=2)
    for seed in range(20):
        draw = Random(seed)
        partition(random_tables(draw), random_objective(draw))
    assert sorted(_kernels("solver.") - set(compared)) == []
