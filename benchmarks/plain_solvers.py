"""Plain CP-SAT and plain HiGHS on the unreduced selection problem, two threads, in the same time."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from planner.shard.instance import read_instance
from solver.selection.problem import FORBIDDEN, SelectionProblem

Found = tuple[str, int | None]
"""The solver's own word for its end, and its cost."""


def alone(solver: Callable[[SelectionProblem, float], Found], path: Path, seconds: float) -> Found:
    """Ask one solver in a process of its own: the two wheels bring builds of HiGHS that cannot share a process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(_read_and_solve, solver, path, seconds).result()


def _read_and_solve(solver: Callable[[SelectionProblem, float], Found], path: Path, seconds: float) -> Found:
    try:
        return solver(read_instance(path), seconds)
    except ModuleNotFoundError as error:
        return f"{error.name} is not installed", None


def plain_cp_sat(problem: SelectionProblem, seconds: float) -> Found:
    """CP-SAT on one Boolean an option and one a permitted pair, two workers, model building included."""
    from ortools.sat.python import cp_model

    begin = time.monotonic()
    model = cp_model.CpModel()
    chosen: list[list[Any]] = []
    terms, weights = [], []
    for i, count in enumerate(problem.option_counts.tolist()):
        options = [model.new_bool_var("") for _ in range(count)]
        model.add_exactly_one(options)
        chosen.append(options)
        first = int(problem.option_start[i])
        for variable, cost in zip(options, problem.node_costs[first : first + count].tolist(), strict=True):
            if cost >= FORBIDDEN:
                model.add(variable == 0)
            else:
                terms.append(variable)
                weights.append(cost)
    for e, (a, b) in enumerate(problem.edge_nodes.tolist()):
        if time.monotonic() - begin > seconds:
            return "no model in time", None
        table = problem.edge_costs[problem.edge_start[e] : problem.edge_start[e + 1]].tolist()
        rows: list[list[Any]] = [[] for _ in chosen[a]]
        columns: list[list[Any]] = [[] for _ in chosen[b]]
        for cell, cost in enumerate(table):
            if cost < FORBIDDEN:
                pair = model.new_bool_var("")
                rows[cell // len(columns)].append(pair)
                columns[cell % len(columns)].append(pair)
                terms.append(pair)
                weights.append(cost)
        for groups, options in ((rows, chosen[a]), (columns, chosen[b])):
            for group, option in zip(groups, options, strict=True):
                model.add(sum(group) == option)
    for live in memory_rows(problem):
        used = [(chosen[i][k], usage) for i, usages in live for k, usage in enumerate(usages) if usage]
        model.add(cp_model.LinearExpr.weighted_sum([v for v, _ in used], [u for _, u in used]) <= problem.capacity)
        if time.monotonic() - begin > seconds:
            return "no model in time", None
    model.minimize(cp_model.LinearExpr.weighted_sum(terms, weights))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 2
    solver.parameters.max_time_in_seconds = max(1.0, seconds - (time.monotonic() - begin))
    status = solver.solve(model)
    found = status in {cp_model.OPTIMAL, cp_model.FEASIBLE}
    return solver.status_name(status), round(solver.objective_value) if found else None


def plain_highs(problem: SelectionProblem, seconds: float) -> Found:
    """HiGHS on the same model: options binary, permitted pairs continuous, two threads, model building included."""
    import highspy
    import numpy as np

    begin = time.monotonic()
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 2)
    lower, upper, costs = [], [], []
    for cost in problem.node_costs.tolist():
        lower.append(0.0)
        upper.append(0.0 if cost >= FORBIDDEN else 1.0)
        costs.append(0.0 if cost >= FORBIDDEN else float(cost))
    permitted = np.flatnonzero(problem.edge_costs < FORBIDDEN)
    num_options = problem.node_costs.size
    costs += problem.edge_costs[permitted].astype(float).tolist()
    size = num_options + permitted.size
    highs.addVars(size, np.array(lower + [0.0] * permitted.size), np.array(upper + [1.0] * permitted.size))
    highs.changeColsCost(size, np.arange(size, dtype=np.int32), np.array(costs))
    kinds = np.array([highspy.HighsVarType.kInteger] * num_options)
    highs.changeColsIntegrality(num_options, np.arange(num_options, dtype=np.int32), kinds)
    start = problem.option_start.tolist()
    for i in range(problem.num_nodes):
        columns = np.arange(start[i], start[i + 1], dtype=np.int32)
        highs.addRow(1.0, 1.0, columns.size, columns, np.ones(columns.size))
    edge = np.searchsorted(problem.edge_start, permitted, side="right") - 1
    for e, (a, b) in enumerate(problem.edge_nodes.tolist()):
        if time.monotonic() - begin > seconds:
            return "no model in time", None
        first, last = np.searchsorted(edge, [e, e + 1])
        k, m = np.divmod(permitted[first:last] - problem.edge_start[e], problem.option_counts[b])
        for end, value in ((a, k), (b, m)):
            for option in range(start[end + 1] - start[end]):
                columns = np.append(num_options + first + np.flatnonzero(value == option), start[end] + option)
                entries = np.append(np.ones(columns.size - 1), -1.0)
                highs.addRow(0.0, 0.0, columns.size, columns.astype(np.int32), entries)
    for live in memory_rows(problem):
        columns = np.concatenate([np.arange(start[i], start[i + 1]) for i, _ in live]).astype(np.int32)
        entries = np.concatenate([np.asarray(usages, float) for _, usages in live])
        highs.addRow(-highspy.kHighsInf, float(problem.capacity or 0), columns.size, columns, entries)
        if time.monotonic() - begin > seconds:
            return "no model in time", None
    highs.setOptionValue("time_limit", max(1.0, seconds - (time.monotonic() - begin)))
    highs.run()
    info = highs.getInfo()
    found = info.primal_solution_status == 2
    return highs.modelStatusToString(highs.getModelStatus()), round(info.objective_function_value) if found else None


def memory_rows(problem: SelectionProblem) -> Any:
    """Per time at which something ends, the nodes live just before it with their usages; nothing without a capacity."""
    if problem.capacity is None:
        return
    live: dict[int, list[int]] = {}
    begins = sorted(range(problem.num_nodes), key=lambda i: int(problem.live_from[i]))
    using = [i for i in begins if problem.live_from[i] < problem.live_until[i]]
    position = 0
    for end in sorted({int(problem.live_until[i]) for i in using}):
        grown = False
        while position < len(using) and problem.live_from[using[position]] < end:
            i = using[position]
            first = int(problem.option_start[i])
            live[i] = problem.usages[first : first + int(problem.option_counts[i])].tolist()
            position, grown = position + 1, True
        if grown:
            yield list(live.items())
        for i in [i for i in live if problem.live_until[i] <= end]:
            del live[i]
