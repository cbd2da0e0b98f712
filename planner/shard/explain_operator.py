"""Why an operator has its placement: its options with what it and its neighbours would pay for each."""

from __future__ import annotations

import difflib
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.errors import NotFound
from planner.shard.placement import words_of
from planner.shard.prove import ProvedStep
from planner.shard.redistribution import PICOSECONDS
from profiles.document import Document
from solver.selection.problem import FORBIDDEN


class NeighbourCost(Document):
    """Resharding between the operator and one neighbour that keeps its choice."""

    name: str
    resharding_s: float


class OptionCost(Document):
    """One option: what it takes and gives, its own time, and what it costs around it."""

    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]
    compute_s: float
    resharding_s: float
    memory_bytes: int
    slower_by_s: float
    chosen: bool
    neighbours: tuple[NeighbourCost, ...]


class OperatorExplanation(Document):
    """All possible options of one operator with every other choice kept, best first."""

    name: str
    target: str
    module_path: str
    copies: int
    options: tuple[OptionCost, ...]
    impossible: int


@dataclass(frozen=True, slots=True)
class _Around:
    """Costs around one variable: per neighbour the picoseconds of each option [K]."""

    name: str
    cost: NDArray[np.int64]


def explain_operator(proved: ProvedStep, name: str, most: int = 12) -> OperatorExplanation:
    """Explain one node of the graph.  Raises NotFound with the nearest names."""
    graph, tables = proved.question.graph, proved.tables
    found = next((index for index, node in enumerate(graph.nodes) if node.name == name), None)
    if found is None:
        near = difflib.get_close_matches(name, [node.name for node in graph.nodes], 5, 0.3)
        raise NotFound(
            f"no operator is called {name!r}", where="--explain", hint=f"nearest: {', '.join(near) or 'none'}"
        )
    node, variable = graph.nodes[found], tables.variables.of_node[found]
    options, problem = tables.options[variable], tables.problem
    own = problem.node_costs[problem.option_start[variable] : problem.option_start[variable + 1]]
    around = _around(proved, variable)
    total = own + sum((each.cost for each in around), np.zeros_like(own))
    chosen = proved.choice[variable]
    possible = [int(index) for index in np.argsort(total, kind="stable") if total[index] < FORBIDDEN]
    shown = possible[:most]
    if chosen not in shown:
        shown = [*shown[:-1], chosen]
    rows = []
    for option in shown:
        neighbours = [NeighbourCost(name=each.name, resharding_s=each.cost[option] / PICOSECONDS) for each in around]
        rows.append(
            OptionCost(
                inputs=tuple(words_of(options.input_layout(option, place)) for place in range(len(node.reads))),
                outputs=tuple(
                    words_of(options.output_layout(option, place)) for place in range(len(node.output_shapes))
                ),
                compute_s=own[option] / PICOSECONDS,
                resharding_s=int(total[option] - own[option]) / PICOSECONDS,
                memory_bytes=int(problem.usages[problem.option_start[variable] + option]),
                slower_by_s=int(total[option] - total[chosen]) / PICOSECONDS,
                chosen=option == chosen,
                neighbours=tuple(each for each in neighbours if each.resharding_s > 0),
            )
        )
    copies = proved.folded.representative.count(proved.folded.representative[found])
    return OperatorExplanation(
        name=name,
        target=node.target,
        module_path=node.module_path,
        copies=copies,
        options=tuple(rows),
        impossible=len(options) - len(possible),
    )


def _around(proved: ProvedStep, variable: int) -> list[_Around]:
    """Every edge of the variable with the other end as chosen, summed by neighbour."""
    problem, tables = proved.tables.problem, proved.tables
    costs: dict[int, NDArray[np.int64]] = defaultdict(
        lambda: np.zeros(int(problem.option_counts[variable]), dtype=np.int64)
    )
    for edge, (first, second) in enumerate(problem.edge_nodes.tolist()):
        if variable not in (first, second):
            continue
        table = problem.edge_costs[problem.edge_start[edge] : problem.edge_start[edge + 1]]
        table = table.reshape(problem.option_counts[first], problem.option_counts[second])
        other = second if first == variable else first
        column = table[:, proved.choice[second]] if first == variable else table[proved.choice[first]]
        costs[other] = np.minimum(costs[other] + column, FORBIDDEN)
    del tables
    return [_Around(problem.name(other), cost) for other, cost in costs.items()]
