"""The step on a mesh as a selection problem: the tables that the solver gets.

Variables    x_v, the option of every representative node; y_p, the layout of the training state of parameter p
Objective    compute of every node (its copies counted) + resharding of every tensor that an operator reads
             + gradient -> state (reduced into y_p) + update of y_p + state -> parameter (gathered back)
             + the loss, gradients of inputs and new buffers brought to where they are handed out
Constraint   at every step of the kept timeline: parameters, states, and outputs from their step to their last use

A view has no memory of its own: it prolongs what it shows.  What a resharding holds while it runs is left to the
simulation of the answer (``planner.shard.memory_over_time``), so that the solver's bound is a bound for it too.
Costs are whole picoseconds (10^18 of them are 11 days), memory whole bytes.  Shape letters: K options, A axes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.shard.folding import FoldedGraph
from planner.shard.mesh_shapes import MeshShape
from planner.shard.operator_graph import OperatorGraph, OperatorNode
from planner.shard.operator_work import OperatorTimes
from planner.shard.options import OperatorOptions, local_bytes, operator_options
from planner.shard.placement import REPLICATE
from planner.shard.redistribution import PICOSECONDS, RedistributionTimes
from planner.shard.training_state import TrainingState
from planner.shard.variables import OWN_LAYOUT, Edge, Variable, Variables, variables_of
from solver.arrays import Ints
from solver.selection.problem import FORBIDDEN, SelectionProblem


@dataclass(frozen=True)
class SelectionTables:
    """A selection problem and what its nodes stand for; ``options`` are those of each variable."""

    problem: SelectionProblem
    variables: Variables
    options: tuple[OperatorOptions, ...]


@dataclass
class TableBuilder:
    """Builds the tables of one graph on one mesh.

    ``restricted``: variables of nodes and states (``(kind, node)``) that may take only some options: masks bool[K].
    """

    graph: OperatorGraph
    folded: FoldedGraph
    times: OperatorTimes
    redistribution: RedistributionTimes
    state: TrainingState
    capacity_bytes: int | None
    restricted: dict[tuple[str, int], NDArray[np.bool_]] = field(default_factory=dict)
    _known: dict[str, OperatorOptions] = field(default_factory=dict)

    @property
    def mesh(self) -> MeshShape:
        """The mesh."""
        return self.times.mesh

    def build(self) -> SelectionTables:
        """All tables."""
        variables = variables_of(self.graph, self.folded)
        options = tuple(self.options_of(each) for each in variables.rows)
        node_costs = self._node_costs(variables, options)
        merged: dict[tuple[int, int], Ints] = {}
        for edge, count in variables.edges.items():
            table = _repeated(self.edge_table(edge, variables, options), count)
            if edge.source == edge.target:
                node_costs[edge.source] = np.minimum(node_costs[edge.source] + np.diagonal(table), FORBIDDEN)
                continue
            pair = (edge.source, edge.target)
            merged[pair] = np.minimum(merged[pair] + table, FORBIDDEN) if pair in merged else table
        for index, each in enumerate(variables.rows):
            if each.kind == "copies":
                merged[variables.of_node[each.node], index] = _tie(len(options[index]))
        return SelectionTables(self._problem(variables, options, node_costs, merged), variables, options)

    def _problem(
        self,
        variables: Variables,
        options: tuple[OperatorOptions, ...],
        node_costs: list[Ints],
        edge_costs: dict[tuple[int, int], Ints],
    ) -> SelectionProblem:
        usages = [self._usage(each, chosen) for each, chosen in zip(variables.rows, options, strict=True)]
        return SelectionProblem(
            option_counts=np.array([len(each) for each in options], dtype=np.int64),
            node_costs=np.concatenate(node_costs),
            usages=np.concatenate(usages),
            live_from=np.array([each.live_from for each in variables.rows], dtype=np.int64),
            live_until=np.array([each.live_until for each in variables.rows], dtype=np.int64),
            edge_nodes=np.array(list(edge_costs), dtype=np.int64).reshape(-1, 2),
            edge_costs=np.concatenate([np.zeros(0, dtype=np.int64), *(each.ravel() for each in edge_costs.values())]),
            capacity=self.capacity_bytes,
            node_names=tuple(self._name(each) for each in variables.rows),
        )

    def options_of(self, variable: Variable) -> OperatorOptions:
        """What a variable may take."""
        node = self.graph.nodes[variable.node]
        if node.signature not in self._known:
            self._known[node.signature] = operator_options(node, self.mesh)
        found = self._known[node.signature]
        kind = "state" if variable.kind == "state" else "node"
        mask = self.restricted.get((kind, variable.node))
        return found if mask is None else OperatorOptions(found.inputs[mask], found.outputs[mask])

    def edge_table(self, edge: Edge, variables: Variables, options: tuple[OperatorOptions, ...]) -> Ints:
        """Picoseconds between every option of the source and every option of the target, once: [K, K]."""
        source = self.graph.nodes[variables.rows[edge.source].node]
        shape = source.output_shapes[edge.output]
        held, target = options[edge.source].outputs[:, edge.output], options[edge.target]
        needed = target.outputs[:, 0] if edge.argument == OWN_LAYOUT else target.inputs[:, edge.argument]
        return self.redistribution.table_ps(shape.size_bytes if shape else 0, held, needed)

    def _node_costs(self, variables: Variables, options: tuple[OperatorOptions, ...]) -> list[Ints]:
        copies = Counter(self.folded.representative)
        costs: list[Ints] = []
        for each, chosen in zip(variables.rows, options, strict=True):
            node = self.graph.nodes[each.node]
            if each.kind == "copies":
                costs.append(np.zeros(len(chosen), dtype=np.int64))
            elif each.kind == "state":
                costs.append(each.count * self.update_ps(node, chosen))
            else:
                costs.append(copies[each.node] * self.times.times_ps(node, chosen))
        for result in self.graph.results:
            if result.name == "loss":
                index = variables.of_node[result.read.producer]
                shape = self.graph.nodes[result.read.producer].output_shapes[result.read.output]
                whole = np.full((1, self.mesh.num_axes), REPLICATE, dtype=np.int8)
                held = options[index].outputs[:, result.read.output]
                extra = self.redistribution.table_ps(shape.size_bytes if shape else 0, held, whole)[:, 0]
                costs[index] = np.minimum(costs[index] + extra, FORBIDDEN)
        return costs

    def update_ps(self, node: OperatorNode, options: OperatorOptions) -> Ints:
        """Picoseconds of the optimizer's update of one parameter, for each layout of its state."""
        shape = node.output_shapes[0]
        if shape is None:
            return np.zeros(len(options), dtype=np.int64)
        elements = local_bytes(options.outputs[:, 0], shape, self.mesh) / shape.element_bytes
        return np.rint(self.times.memory_s(elements * self.state.update_bytes(shape)) * PICOSECONDS).astype(np.int64)

    def _usage(self, variable: Variable, options: OperatorOptions) -> Ints:
        node = self.graph.nodes[variable.node]
        if variable.kind == "state":
            return variable.count * self.state_bytes(node, options)
        return variable.count * output_bytes(node, options, self.mesh)

    def state_bytes(self, node: OperatorNode, options: OperatorOptions) -> Ints:
        """Bytes of gradient, master copy and moments of one parameter, for each layout of its state."""
        shape = node.output_shapes[0]
        if shape is None:
            return np.zeros(len(options), dtype=np.int64)
        elements = local_bytes(options.outputs[:, 0], shape, self.mesh) / shape.element_bytes
        return np.ceil(elements * self.state.state_bytes(shape)).astype(np.int64)

    def _name(self, variable: Variable) -> str:
        name = self.graph.nodes[variable.node].name
        return name if variable.kind == "node" else f"{name} ({variable.kind})"


def output_bytes(node: OperatorNode, options: OperatorOptions, mesh: MeshShape) -> Ints:
    """Bytes of the outputs on one device for each option; a view has none of its own."""
    total = np.zeros(len(options), dtype=np.int64)
    if node.is_view:
        return total
    for index, shape in enumerate(node.output_shapes):
        if shape is not None:
            total += local_bytes(options.outputs[:, index], shape, mesh)
    return total


def _tie(size: int) -> Ints:
    table = np.full((size, size), FORBIDDEN, dtype=np.int64)
    np.fill_diagonal(table, 0)
    return table


def _repeated(table: Ints, count: int) -> Ints:
    return np.where(table >= FORBIDDEN, FORBIDDEN, np.minimum(table, FORBIDDEN // count) * count)
