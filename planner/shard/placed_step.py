"""The step with a layout for everything: what an answer of the solver, a saved plan or a hand-written baseline says.

``bill`` adds its time up from scratch, operator by operator, without the solver's tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.shard.operator_graph import OperatorGraph
from planner.shard.options import OperatorOptions
from planner.shard.placement import REPLICATE, Layout
from planner.shard.selection_tables import SelectionTables, TableBuilder


@dataclass(frozen=True)
class PlacedStep:
    """Layouts of every node's inputs and outputs, and of the training state of every trained parameter."""

    inputs: tuple[tuple[Layout, ...], ...]
    outputs: tuple[tuple[Layout, ...], ...]
    states: dict[int, Layout]

    def options(self, node: int) -> OperatorOptions:
        """The choice for one node as its only option."""
        axes = len(self.outputs[node][0])
        reads = np.array(self.inputs[node], dtype=np.int8).reshape(1, len(self.inputs[node]), axes)
        return OperatorOptions(reads, np.array(self.outputs[node], dtype=np.int8)[None])


@dataclass(frozen=True)
class StepBill:
    """Picoseconds of a placed step by term; ``edges_ps`` per tensor argument of each node."""

    compute_ps: tuple[int, ...]
    edges_ps: tuple[tuple[int, ...], ...]
    gradient_ps: dict[int, int]
    update_ps: dict[int, int]
    gather_ps: dict[int, int]
    """Of each trained parameter: gradient into its state, the update itself, the update back into the parameter."""
    results_ps: tuple[int, ...]

    @property
    def resharding_ps(self) -> int:
        """All resharding."""
        edges = sum(sum(each) for each in self.edges_ps)
        return edges + sum(self.gradient_ps.values()) + sum(self.gather_ps.values()) + sum(self.results_ps)

    @property
    def total_ps(self) -> int:
        """The whole step."""
        return sum(self.compute_ps) + sum(self.update_ps.values()) + self.resharding_ps


def placed_step(graph: OperatorGraph, tables: SelectionTables, choice: Sequence[int]) -> PlacedStep:
    """The layouts that a choice of the solver stands for."""
    inputs, outputs = [], []
    for index, node in enumerate(graph.nodes):
        variable = tables.variables.of_node[index]
        options, option = tables.options[variable], choice[variable]
        inputs.append(tuple(options.input_layout(option, place) for place in range(len(node.reads))))
        outputs.append(tuple(options.output_layout(option, place) for place in range(len(node.output_shapes))))
    states = {
        index: tables.options[state].output_layout(choice[state], 0)
        for index, state in _states(graph, tables)
    }  # fmt: skip
    return PlacedStep(tuple(inputs), tuple(outputs), states)


def _states(graph: OperatorGraph, tables: SelectionTables) -> list[tuple[int, int]]:
    by_variable = {tables.variables.of_node[node]: state for node, state in tables.variables.of_state.items()}
    return [
        (index, by_variable[tables.variables.of_node[index]])
        for index in sorted(graph.names)
        if tables.variables.of_node[index] in by_variable
    ]


def bill(graph: OperatorGraph, placed: PlacedStep, builder: TableBuilder) -> StepBill:
    """Add up what a placed step costs."""
    times, redistribution = builder.times, builder.redistribution
    compute: list[int] = []
    edges: list[tuple[int, ...]] = []
    # Copies of a block do the same on the same parts.
    known: dict[tuple[object, ...], int] = {}
    for index, node in enumerate(graph.nodes):
        key = (node.signature, placed.inputs[index], placed.outputs[index])
        if key not in known:
            known[key] = int(times.times_ps(node, placed.options(index))[0])
        compute.append(known[key])
        edges.append(
            tuple(
                redistribution.time_ps(
                    node.input_shapes[place].size_bytes,
                    placed.outputs[read.producer][read.output],
                    placed.inputs[index][place],
                )
                for place, read in enumerate(node.reads)
            )
        )
    return _with_results(graph, placed, builder, compute, edges)


def _with_results(
    graph: OperatorGraph,
    placed: PlacedStep,
    builder: TableBuilder,
    compute: list[int],
    edges: list[tuple[int, ...]],
) -> StepBill:
    """Gradients into states, updates, states into parameters, and everything else that is handed out."""
    redistribution = builder.redistribution
    numbers = {name: index for index, name in graph.names.items()}
    gradient: dict[int, int] = {}
    gather: dict[int, int] = {}
    update: dict[int, int] = {}
    results: list[int] = []
    for result in graph.results:
        kind, _, name = result.name.partition(":")
        read = result.read
        held = placed.outputs[read.producer][read.output]
        size = _size(graph, read.producer, read.output)
        if kind == "parameter":
            node = numbers[name]
            state = placed.states[node]
            gradient[node] = redistribution.time_ps(size, held, state)
            gather[node] = redistribution.time_ps(_size(graph, node, 0), state, placed.outputs[node][0])
            update[node] = int(builder.update_ps(graph.nodes[node], only_option(state))[0])
            continue
        goal = (REPLICATE,) * len(held) if kind == "loss" else placed.outputs[numbers[name]][0]
        results.append(redistribution.time_ps(size, held, goal))
    return StepBill(tuple(compute), tuple(edges), gradient, update, gather, tuple(results))


def _size(graph: OperatorGraph, node: int, output: int) -> int:
    shape = graph.nodes[node].output_shapes[output]
    return shape.size_bytes if shape else 0


def only_option(layout: Layout) -> OperatorOptions:
    """A layout of one tensor as the only option of what makes it."""
    codes = np.array(layout, dtype=np.int8).reshape(1, 1, -1)
    return OperatorOptions(codes[:, :0], codes)
