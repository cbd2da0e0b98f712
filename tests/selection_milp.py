"""A selection problem by HiGHS alone, the tests' independent oracle: the local polytope with whole choices."""

from __future__ import annotations

import highspy
import numpy as np

from solver.selection.answer import Answer
from solver.selection.problem import FORBIDDEN, SelectionProblem


def solve_by_milp(problem: SelectionProblem, time_limit_s: float = 60.0) -> Answer:
    """Choose by HiGHS; costs are scaled to keep its tolerances meaningful."""
    allowed = problem.node_costs < FORBIDDEN
    scale = max(float(problem.node_costs[allowed].max(initial=1)), 1.0) / 1e5
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("time_limit", time_limit_s)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("mip_rel_gap", 1e-9)
    rows: list[tuple[float, float, dict[int, float]]] = []
    lower, upper, cost, integer = [], [], [], []
    for value in range(problem.node_costs.size):
        lower.append(0.0)
        upper.append(1.0 if allowed[value] else 0.0)
        cost.append(float(problem.node_costs[value]) / scale if allowed[value] else 0.0)
        integer.append(True)
    start = problem.option_start
    for node in range(problem.num_nodes):
        rows.append((1.0, 1.0, dict.fromkeys(range(start[node], start[node + 1]), 1.0)))
    for edge, (a, b) in enumerate(problem.edge_nodes):
        table = problem.edge_costs[problem.edge_start[edge] : problem.edge_start[edge + 1]]
        table = table.reshape(problem.option_counts[a], problem.option_counts[b])
        by_row: list[dict[int, float]] = [{int(start[a]) + i: -1.0} for i in range(table.shape[0])]
        by_column: list[dict[int, float]] = [{int(start[b]) + j: -1.0} for j in range(table.shape[1])]
        for i, j in zip(*np.nonzero(table < FORBIDDEN), strict=True):
            by_row[i][len(cost)] = by_column[j][len(cost)] = 1.0
            lower.append(0.0)
            upper.append(1.0)
            cost.append(float(table[i, j]) / scale)
            integer.append(False)
        rows += [(0.0, 0.0, row) for row in (*by_row, *by_column)]
    if problem.capacity is not None:
        rows += _memory_rows(problem)
    _load(highs, rows, lower, upper, cost, integer)
    highs.run()
    if highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return Answer("infeasible", None, None, None, None, 0.0, ())
    values = np.array(highs.getSolution().col_value)[: problem.node_costs.size]
    choice = tuple(int(np.argmax(values[start[n] : start[n + 1]])) for n in range(problem.num_nodes))
    total = cost_of(problem, choice)
    bound = int(np.floor(highs.getInfo().mip_dual_bound * scale))
    gap = max(total - bound, 0) / max(abs(total), 1)
    return Answer("optimal" if gap < 1e-6 else "feasible", total, choice, min(bound, total), gap, 0.0, ())


def cost_of(problem: SelectionProblem, choice: tuple[int, ...]) -> int:
    """Exact cost of a choice."""
    total = sum(int(problem.node_costs[problem.option_start[n] + k]) for n, k in enumerate(choice))
    for edge, (a, b) in enumerate(problem.edge_nodes):
        place = problem.edge_start[edge] + choice[a] * problem.option_counts[b] + choice[b]
        total += int(problem.edge_costs[place])
    return total


def _memory_rows(problem: SelectionProblem) -> list[tuple[float, float, dict[int, float]]]:
    rows = []
    for time in sorted({int(each) for each in problem.live_from}):
        live = np.nonzero((problem.live_from <= time) & (time < problem.live_until))[0]
        row = {
            int(value): float(problem.usages[value]) / float(problem.capacity or 1)
            for node in live
            for value in range(problem.option_start[node], problem.option_start[node + 1])
            if problem.usages[value]
        }
        if row:
            rows.append((-np.inf, 1.0, row))
    return rows


def _load(
    highs: highspy.Highs,
    rows: list[tuple[float, float, dict[int, float]]],
    lower: list[float],
    upper: list[float],
    cost: list[float],
    integer: list[bool],
) -> None:
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(rows)
    model.col_cost_, model.col_lower_, model.col_upper_ = np.array(cost), np.array(lower), np.array(upper)
    model.row_lower_ = np.array([row[0] for row in rows])
    model.row_upper_ = np.array([row[1] for row in rows])
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.concatenate([[0], np.cumsum([len(row[2]) for row in rows])])
    model.a_matrix_.index_ = np.array([index for row in rows for index in row[2]], dtype=np.int32)
    model.a_matrix_.value_ = np.array([value for row in rows for value in row[2].values()])
    model.integrality_ = [
        highspy.HighsVarType.kInteger if each else highspy.HighsVarType.kContinuous for each in integer
    ]
    highs.passModel(model)
