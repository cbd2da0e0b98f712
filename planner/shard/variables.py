"""The variables that the solver chooses, and when each choice needs memory.

One variable for every representative node (``node``), one for the training state of every parameter with a gradient
(``state``), and one tied to a node (``copies``) where copies of it are alive at other steps than it is itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from planner.shard.folding import FoldedGraph
from planner.shard.operator_graph import OperatorGraph

VariableKind = Literal["node", "state", "copies"]
Span = tuple[int, int]
OWN_LAYOUT = -1
"""The "argument" of an edge into a variable's own layout: a gradient into its state, a state into its parameter."""


@dataclass(frozen=True, slots=True)
class Variable:
    """``count`` copies of ``node``, alive from ``live_from`` until before ``live_until`` of the kept timeline."""

    kind: VariableKind
    node: int
    count: int
    live_from: int
    live_until: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A tensor: output ``output`` of variable ``source``, read as argument ``argument`` of variable ``target``."""

    source: int
    output: int
    target: int
    argument: int


@dataclass(frozen=True)
class Variables:
    """All variables; ``of_node`` numbers that of every node's representative, ``of_state`` that of its state."""

    rows: tuple[Variable, ...]
    of_node: tuple[int, ...]
    of_state: dict[int, int]
    edges: dict[Edge, int]
    """How often each edge occurs."""


def variables_of(graph: OperatorGraph, folded: FoldedGraph) -> Variables:
    """The variables of a step, and the edges between them."""
    spans, end = memory_spans(graph, folded)
    members: dict[int, list[int]] = defaultdict(list)
    for index, chosen in enumerate(folded.representative):
        members[chosen].append(index)
    rows: list[Variable] = []
    extra: list[Variable] = []
    of_representative: dict[int, int] = {}
    for chosen, copies in members.items():
        alive = Counter(spans[copy] for copy in copies)
        own = spans[chosen]
        of_representative[chosen] = len(rows)
        rows.append(Variable("node", chosen, alive.pop(own), *own))
        if not graph.nodes[chosen].is_view:
            extra += [Variable("copies", chosen, count, *span) for span, count in alive.items() if span[0] < span[1]]
    of_state: dict[int, int] = {}
    for chosen, copies in members.items():
        if graph.nodes[chosen].kind == "parameter" and graph.names[chosen] in graph.gradients:
            of_state[chosen] = len(rows)
            rows.append(Variable("state", chosen, len(copies), 0, end))
    of_node = tuple(of_representative[each] for each in folded.representative)
    edges = Counter(_edges(graph, folded, of_node, of_state))
    return Variables((*rows, *extra), of_node, of_state, dict(edges))


def memory_spans(graph: OperatorGraph, folded: FoldedGraph) -> tuple[list[Span], int]:
    """From when until when each node's memory is needed on the kept timeline, and how long that is."""
    kept_before = [0, *accumulate(int(each) for each in folded.kept)]
    end = kept_before[-1]
    spans: list[Span] = []
    for index, node in enumerate(graph.nodes):
        if node.kind in ("parameter", "buffer"):
            spans.append((0, end))
        else:
            first = 0 if node.kind == "input" else index
            spans.append((kept_before[first], kept_before[graph.last_use[index] + 1]))
    return spans, end


def _edges(
    graph: OperatorGraph, folded: FoldedGraph, of_node: tuple[int, ...], of_state: dict[int, int]
) -> Iterator[Edge]:
    for index, node in enumerate(graph.nodes):
        for argument, read in enumerate(node.reads):
            yield Edge(of_node[read.producer], read.output, of_node[index], argument)
    numbers = {name: index for index, name in graph.names.items()}
    for result in graph.results:
        kind, _, name = result.name.partition(":")
        if kind == "loss":
            continue
        held = numbers[name]
        target = of_node[held]
        if kind == "parameter":
            target = of_state[folded.representative[held]]
            yield Edge(target, 0, of_node[held], OWN_LAYOUT)
        yield Edge(of_node[result.read.producer], result.read.output, target, OWN_LAYOUT)
