"""The memory of a placed step at every operator: simulated, unfolded, with what resharding holds.

Parameters, buffers and training state live always; an operator's outputs from its step to their last use; a view
shares its input's memory unless the input is resharded for it.  A tensor that is resharded for one operator exists
twice while that operator runs.  Shape letter: T operators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.shard.mesh_shapes import MeshShape
from planner.shard.operator_graph import OperatorGraph, TensorShape
from planner.shard.options import local_bytes
from planner.shard.placed_step import PlacedStep
from planner.shard.placement import Layout
from planner.shard.training_state import TrainingState


@dataclass(frozen=True)
class MemoryOverTime:
    """Bytes on one device: ``total_bytes`` int64[T] at every operator, and what is there all the time."""

    total_bytes: NDArray[np.int64]
    parameters_bytes: int
    states_bytes: int

    @property
    def peak_bytes(self) -> int:
        """The most at any operator."""
        return int(self.total_bytes.max(initial=0))

    @property
    def peak_step(self) -> int:
        """The operator at which that is."""
        return int(self.total_bytes.argmax()) if self.total_bytes.size else 0


def memory_over_time(graph: OperatorGraph, placed: PlacedStep, mesh: MeshShape, state: TrainingState) -> MemoryOverTime:
    """Simulate the step."""
    steps = len(graph.nodes)
    change = np.zeros(steps + 1, dtype=np.int64)
    passing = np.zeros(steps, dtype=np.int64)
    parameters = states = 0
    owner = list(range(steps))
    last = list(range(steps))
    for index, node in enumerate(graph.nodes):
        for place, read in enumerate(node.reads):
            resharded = placed.outputs[read.producer][read.output] != placed.inputs[index][place]
            if node.is_view and place == 0:
                owner[index] = index if resharded else owner[read.producer]
            elif resharded:
                passing[index] += _bytes(node.input_shapes[place], placed.inputs[index][place], mesh)
            last[owner[read.producer]] = max(last[owner[read.producer]], index)
    for index, node in enumerate(graph.nodes):
        if node.kind in ("parameter", "buffer"):
            parameters += _bytes(node.output_shapes[0], placed.outputs[index][0], mesh)
        elif owner[index] == index:
            held = _held_bytes(graph, placed, index, mesh)
            change[0 if node.kind == "input" else index] += held
            change[last[index] + 1] -= held
    for node_index, layout in placed.states.items():
        shape = graph.nodes[node_index].output_shapes[0]
        if shape is not None:
            elements = _bytes(shape, layout, mesh) / shape.element_bytes
            states += int(np.ceil(elements * state.state_bytes(shape)))
    return MemoryOverTime(np.cumsum(change)[:-1] + passing + parameters + states, parameters, states)


def _held_bytes(graph: OperatorGraph, placed: PlacedStep, index: int, mesh: MeshShape) -> int:
    """What a node keeps: its outputs, or the resharded input that a view shows."""
    node = graph.nodes[index]
    if node.is_view:
        return _bytes(node.input_shapes[0], placed.inputs[index][0], mesh)
    return sum(
        _bytes(shape, layout, mesh) for shape, layout in zip(node.output_shapes, placed.outputs[index], strict=True)
    )


def _bytes(shape: TensorShape | None, layout: Layout, mesh: MeshShape) -> int:
    if shape is None:
        return 0
    return int(local_bytes(np.array([layout], dtype=np.int8), shape, mesh)[0])
