"""The check of a selection: recomputed from the tables in Python's integers, trusting no engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solver.check import CheckFailed
from solver.selection.problem import FORBIDDEN, SelectionProblem


def check_selection(problem: SelectionProblem, choice: Sequence[int], claimed: int) -> int:
    """Recompute permission, usage over time and cost of a choice; return the cost or raise CheckFailed."""
    cost = selection_cost(problem, choice)
    peak, time = peak_usage(problem, choice)
    if problem.capacity is not None and peak > problem.capacity:
        raise CheckFailed(f"usage is {peak} at time {time}, capacity {problem.capacity}")
    if cost != claimed:
        raise CheckFailed(f"cost is {cost}, claimed {claimed}")
    return cost


def selection_cost(problem: SelectionProblem, choice: Sequence[int]) -> int:
    """The sum of all node and edge costs; raises CheckFailed for an option that does not exist or is forbidden."""
    options = np.asarray(choice, np.int64)
    if options.shape != (problem.num_nodes,):
        raise CheckFailed(f"{options.size} options chosen for {problem.num_nodes} nodes")
    if not ((options >= 0) & (options < problem.option_counts)).all():
        raise CheckFailed("an option is chosen that does not exist")
    node_costs = problem.node_costs[problem.option_start[:-1] + options].tolist()
    first, second = problem.edge_nodes[:, 0], problem.edge_nodes[:, 1]
    cells = problem.edge_start[:-1] + options[first] * problem.option_counts[second] + options[second]
    edge_costs = problem.edge_costs[cells].tolist()
    for kind, costs in (("node", node_costs), ("edge", edge_costs)):
        if max(costs, default=0) >= FORBIDDEN:
            raise CheckFailed(f"{kind} {costs.index(max(costs))} takes a forbidden option")
    return int(sum(node_costs)) + int(sum(edge_costs))


def peak_usage(problem: SelectionProblem, choice: Sequence[int]) -> tuple[int, int]:
    """The largest usage at any time, and the first time at which it is reached."""
    changes: dict[int, int] = {}
    for node, option in enumerate(choice):
        begin, end = int(problem.live_from[node]), int(problem.live_until[node])
        if begin < end:
            usage = int(problem.usages[int(problem.option_start[node]) + option])
            changes[begin] = changes.get(begin, 0) + usage
            changes[end] = changes.get(end, 0) - usage
    now, peak, peak_time = 0, 0, 0
    for time in sorted(changes):
        now += changes[time]
        if now > peak:
            peak, peak_time = now, time
    return peak, peak_time
