"""Operator times from an execution graph: nodes with parents instead of start times.

Execution traces and Chakra graphs link a device node to the host operator that launched it by a control dependency.
The host nodes become a call tree, so that classes, phases, gradients and sizes are found exactly as in a profiler
trace.  A parent that was cut out of the graph on an autograd thread (one with backward operators) stands for an unknown
autograd node.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from profiles.importers.kineto.call_tree import EVALUATE, Call, CallTree, is_node
from profiles.importers.kineto.events import Arguments
from profiles.importers.kineto.operators import OperatorSamples, OperatorTimes
from profiles.importing.torch_operators import operator_rule

_PIECE = re.compile(r"\(\d+\)$")
_MAX_DEPTH = 512


@dataclass(slots=True)
class GraphNode:
    """One node.  ``dims``, ``types`` and ``concrete`` are JSON texts; ``duration_ns`` is the device's time."""

    identity: int
    name: str
    parent: int | None
    is_device: bool
    duration_ns: int
    row: int
    thread: int = 0
    sequence: int | None = None
    is_annotation: bool = False
    dims: bytes = b""
    types: bytes = b""
    concrete: bytes = b""


def graph_operators(nodes: list[GraphNode]) -> tuple[OperatorSamples, int]:
    """Samples of all device nodes, and how many of them took time.  Collectives are not to be among them."""
    samples = OperatorSamples()
    tree, index_of = _call_tree([node for node in nodes if not node.is_device])
    times = OperatorTimes(tree, samples)
    timed = 0
    for node in nodes:
        if node.is_device and node.duration_ns > 0:
            timed += 1
            launcher = index_of.get(node.parent, -1) if node.parent is not None else -1
            times.add_kernel(node.name, launcher, node.duration_ns, node.row)
    times.finish()
    return samples, timed


def _call_tree(hosts: list[GraphNode]) -> tuple[CallTree, dict[int, int]]:
    tree = CallTree()
    index_of: dict[int, int] = {}
    autograd_threads: set[int] = set()
    for node in hosts:
        call = _call(node)
        if node.identity in index_of:
            continue
        index_of[node.identity] = len(tree.calls)
        tree.calls.append(call)
        if is_node(call) or ((rule := operator_rule(call.name)) is not None and rule.backward):
            autograd_threads.add(node.thread)
    for node in hosts:
        call = tree.calls[index_of[node.identity]]
        if node.parent is None or node.parent == node.identity:
            continue
        if node.parent not in index_of and node.thread in autograd_threads and not is_node(call):
            index_of[node.parent] = len(tree.calls)
            tree.calls.append(Call(f"{EVALUATE}: unknown", node.parent, node.parent, None, node.row, False, (0, 0)))
        call.parent = index_of.get(node.parent, -1)
    _cut_circles(tree)
    return tree, index_of


def _call(node: GraphNode) -> Call:
    arguments = Arguments(
        sequence_number=node.sequence,
        dims=msgspec.Raw(node.dims),
        types=msgspec.Raw(node.types),
        concrete=msgspec.Raw(node.concrete),
    )
    name = _PIECE.sub("", node.name)
    # Identities grow in the order of execution: they stand for the start.
    return Call(name, node.identity, node.identity, arguments, node.row, node.is_annotation, (0, node.thread))


def _cut_circles(tree: CallTree) -> None:
    """Parents that lead back to a call, or very deep, are taken off: a graph from outside may be anything."""
    depth: dict[int, int] = {-1: 0}
    for start in range(len(tree.calls)):
        path: list[int] = []
        on_path: set[int] = set()
        index = start
        while index not in depth and index not in on_path:
            path.append(index)
            on_path.add(index)
            index = tree.calls[index].parent
        if index in on_path:
            tree.calls[path[-1]].parent = -1
            index = -1
        below = depth[index]
        for each in reversed(path):
            below += 1
            if below > _MAX_DEPTH:
                tree.calls[each].parent = -1
                below = 1
            depth[each] = below
