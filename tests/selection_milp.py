"""A selection problem by HiGHS alone, the tests' independent oracle: the local polytope with whole choices."""

from __future__ import annotations

import datetime

import numpy as np
from ortools.math_opt.python import mathopt

from solver.selection.answer import Answer
from solver.selection.problem import FORBIDDEN, SelectionProblem


def solve_by_milp(problem: SelectionProblem, time_limit_s: float = 60.0) -> Answer:
    """Choose by HiGHS; costs are scaled to keep its tolerances meaningful."""
    allowed = problem.node_costs < FORBIDDEN
    scale = max(float(problem.node_costs[allowed].max(initial=1)), 1.0) / 1e5
    model = mathopt.Model()
    start = problem.option_start
    chosen = [model.add_variable(lb=0.0, ub=float(each), is_integer=True) for each in allowed]
    costs = [float(cost) / scale * x for cost, x, each in zip(problem.node_costs, chosen, allowed, strict=True) if each]
    for node in range(problem.num_nodes):
        model.add_linear_constraint(mathopt.fast_sum(chosen[start[node] : start[node + 1]]) == 1.0)
    for edge, (a, b) in enumerate(problem.edge_nodes):
        table = problem.edge_costs[problem.edge_start[edge] : problem.edge_start[edge + 1]]
        table = table.reshape(problem.option_counts[a], problem.option_counts[b])
        by_row: list[list[mathopt.Variable]] = [[] for _ in range(table.shape[0])]
        by_column: list[list[mathopt.Variable]] = [[] for _ in range(table.shape[1])]
        for i, j in np.argwhere(table < FORBIDDEN).tolist():
            pair = model.add_variable(lb=0.0, ub=1.0)
            by_row[i].append(pair)
            by_column[j].append(pair)
            costs.append(float(table[i, j]) / scale * pair)
        for end, groups in ((a, by_row), (b, by_column)):
            for option, pairs in enumerate(groups):
                model.add_linear_constraint(mathopt.fast_sum(pairs) == chosen[int(start[end]) + option])
    if problem.capacity is not None:
        _add_memory_rows(model, problem, chosen)
    model.minimize(mathopt.fast_sum(costs))
    result = mathopt.solve(model, mathopt.SolverType.HIGHS, params=highs_parameters(1e-9, time_limit_s))
    if result.termination.reason == mathopt.TerminationReason.INFEASIBLE:
        return Answer("infeasible", None, None, None, None, 0.0, ())
    values = np.array(result.variable_values(chosen))
    choice = tuple(int(np.argmax(values[start[n] : start[n + 1]])) for n in range(problem.num_nodes))
    total = cost_of(problem, choice)
    bound = int(np.floor(result.dual_bound() * scale))
    gap = max(total - bound, 0) / max(abs(total), 1)
    return Answer("optimal" if gap < 1e-6 else "feasible", total, choice, min(bound, total), gap, 0.0, ())


def highs_parameters(relative_gap: float, time_limit_s: float) -> mathopt.SolveParameters:
    """One thread of HiGHS, to this gap."""
    parameters = mathopt.SolveParameters(
        relative_gap_tolerance=relative_gap,
        absolute_gap_tolerance=0.0,
        time_limit=datetime.timedelta(seconds=time_limit_s),
    )
    parameters.highs.int_options["threads"] = 1
    return parameters


def cost_of(problem: SelectionProblem, choice: tuple[int, ...]) -> int:
    """Exact cost of a choice."""
    total = sum(int(problem.node_costs[problem.option_start[n] + k]) for n, k in enumerate(choice))
    for edge, (a, b) in enumerate(problem.edge_nodes):
        place = problem.edge_start[edge] + choice[a] * problem.option_counts[b] + choice[b]
        total += int(problem.edge_costs[place])
    return total


def _add_memory_rows(model: mathopt.Model, problem: SelectionProblem, chosen: list[mathopt.Variable]) -> None:
    for time in sorted({int(each) for each in problem.live_from}):
        live = np.nonzero((problem.live_from <= time) & (time < problem.live_until))[0]
        used = [
            float(problem.usages[value]) / float(problem.capacity or 1) * chosen[value]
            for node in live
            for value in range(problem.option_start[node], problem.option_start[node + 1])
            if problem.usages[value]
        ]
        if used:
            model.add_linear_constraint(mathopt.fast_sum(used) <= 1.0)
