"""Plain CP-SAT and plain HiGHS on the unreduced selection problem, two threads, in the same time."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from planner.shard.instance import read_instance
from solver.mixed_integer import Limits, Program, Triplets, solve_program
from solver.selection.problem import FORBIDDEN, SelectionProblem

Found = tuple[str, int | None]
"""The solver's own word for its end, and its cost."""


def alone(solver: Callable[[SelectionProblem, float], Found], path: Path, seconds: float) -> Found:
    """Ask one solver in a process of its own, which keeps neither its memory nor its threads."""
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
    end = time.monotonic() + seconds
    allowed = problem.node_costs < FORBIDDEN
    permitted = np.flatnonzero(problem.edge_costs < FORBIDDEN)
    num_options, size = allowed.size, allowed.size + permitted.size
    owner = np.repeat(np.arange(problem.num_nodes), problem.option_counts)
    parts = [(owner, np.arange(num_options), np.ones(num_options))]
    count = problem.num_nodes
    edge = np.searchsorted(problem.edge_start, permitted, side="right") - 1
    first, second = problem.edge_nodes.T
    k, m = np.divmod(permitted - problem.edge_start[edge], problem.option_counts[second][edge])
    for ends, value in ((first, k), (second, m)):
        counts = problem.option_counts[ends]
        begins = count + np.concatenate([[0], np.cumsum(counts)])
        rows = np.arange(begins[0], begins[-1])
        each = np.repeat(np.arange(ends.size), counts)
        parts.append((begins[edge] + value, num_options + np.arange(permitted.size), np.ones(permitted.size)))
        parts.append((rows, problem.option_start[ends[each]] + rows - begins[each], -np.ones(rows.size)))
        count = int(begins[-1])
    lower = [(np.arange(count) < problem.num_nodes).astype(float)]
    upper = [*lower]
    for live in memory_rows(problem):
        columns = np.concatenate([np.arange(problem.option_start[i], problem.option_start[i + 1]) for i, _ in live])
        usages = np.concatenate([np.asarray(usages, float) for _, usages in live])
        parts.append((np.full(columns.size, count), columns, usages))
        lower.append(np.full(1, -np.inf))
        upper.append(np.full(1, float(problem.capacity or 0)))
        count += 1
        if time.monotonic() > end:
            return "no model in time", None
    rows, columns, entries = (np.concatenate(each) for each in zip(*parts, strict=True))
    program = Program(
        cost=np.concatenate([np.where(allowed, problem.node_costs, 0), problem.edge_costs[permitted]]).astype(float),
        lower=np.zeros(size),
        upper=np.concatenate([allowed.astype(float), np.ones(permitted.size)]),
        integer=np.arange(size) < num_options,
        matrix=Triplets(rows, columns, entries),
        row_lower=np.concatenate(lower),
        row_upper=np.concatenate(upper),
    )
    left_s = max(1.0, end - time.monotonic())
    found = solve_program(program, Limits(lambda: False, np.inf, left_s), {"threads": 2, "parallel": "on"})
    word = "optimal" if found.optimal else "infeasible" if found.infeasible else "limit reached"
    return word, None if found.values is None else round(float(program.cost @ found.values))


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
