"""Hand-written plans under the same cost model: fixed choices as restrictions of the options.

megatron    Linear layers split by columns, then by rows, over the last axis; activations outside them split over the
            sequence on it (Korthikanti et al., arXiv 2205.05198); batch over the other axes
fsdp        every parameter and its state split over all axes on its first dim, gathered for use; batch over as many
            axes as divide it (Zhao et al., arXiv 2304.11277)

Only what the scheme says is fixed: parameters, states, inputs, how weights are read, and norms.  The rest is solved, so
a baseline here is never slower than what a person would write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.errors import DocumentInvalid
from planner.shard.mesh_shapes import MeshShape
from planner.shard.operator_graph import OperatorGraph, OperatorNode, TensorShape
from planner.shard.options import OperatorOptions, is_even, operator_options
from planner.shard.placement import REPLICATE, Layout, shard
from planner.shard.prove import ProvedStep, Solve, StepQuestion, prove, table_builder
from solver.arrays import Mask

Baseline = Literal["megatron", "fsdp"]
BASELINES: tuple[Baseline, ...] = ("megatron", "fsdp")
NORM = re.compile(r"(^|\.)\w*norm\w*$")


@dataclass(frozen=True, slots=True)
class SplitWeights:
    """Which weights a person splits over the last axis: names of parameters, as regular expressions.

    ``column``: by rows of the matrix (output features), or by experts; ``row``: by its columns (input features).
    """

    column: str = r"(^|\.)(wq|wk|wv|w1|w3|q_proj|k_proj|v_proj|gate_proj|up_proj|c_fc|fc1)\.(weight|bias)$"
    row: str = r"(^|\.)(wo|w2|o_proj|down_proj|c_proj|fc2)\.weight$"


COMMON_NAMES = SplitWeights()
"""Of Llama, GPT and their kin."""


def prove_baseline(
    name: Baseline,
    question: StepQuestion,
    solve: Solve,
    time_limit_s: float = 60.0,
    split: SplitWeights = COMMON_NAMES,
) -> ProvedStep:
    """The best step that the scheme allows.

    ``split`` says which weights ``megatron`` splits.  Raises NoFeasiblePlan, or DocumentInvalid for a step that the
    scheme does not fit, such as ``megatron`` for a network without any of these weights.
    """
    builder = table_builder(question)
    fix = _Megatron(question, split) if name == "megatron" else _FullySharded(question)
    for index, node in enumerate(question.graph.nodes):
        if builder.folded.representative[index] != index:
            continue
        mask = fix.mask(index, node, operator_options(node, question.mesh))
        if mask is not None:
            builder.restricted["node", index] = mask
        if node.kind == "parameter":
            builder.restricted["state", index] = fix.state_mask(index, node, operator_options(node, question.mesh))
    empty = [key for key, mask in builder.restricted.items() if not mask.any()]
    if empty:
        node_name = question.graph.nodes[empty[0][1]].name
        raise DocumentInvalid(
            f"{name} does not fit this step on {question.mesh.text}: {node_name} has no such placement",
            where="--against",
            hint="compare on a mesh whose last axis divides heads and features, and with a batch for the others",
        )
    return prove(question, solve, time_limit_s, builder)


class _Scheme:
    """What both schemes share: batches over data axes, weights read in one layout."""

    def __init__(self, question: StepQuestion) -> None:
        self.graph: OperatorGraph = question.graph
        self.mesh: MeshShape = question.mesh
        self.data = self._data_layout()

    def _data_layout(self) -> Layout:
        raise NotImplementedError

    def held(self, index: int) -> Layout:
        """Layout of a parameter between uses."""
        raise NotImplementedError

    def read(self, index: int) -> Layout:
        """Layout in which a matrix product reads a parameter."""
        raise NotImplementedError

    def mask(self, index: int, node: OperatorNode, options: OperatorOptions) -> Mask | None:
        if node.kind == "parameter":
            return _gives(options, self.held(index))
        if node.kind == "input":
            return _gives(options, self._even(self.data, node.output_shapes[0]))
        if node.work.kind == "contraction":
            return self._reading(node, options)
        return None

    def state_mask(self, index: int, node: OperatorNode, options: OperatorOptions) -> Mask:
        return _gives(options, self.held(index))

    def _reading(self, node: OperatorNode, options: OperatorOptions) -> Mask | None:
        """Weights as the scheme reads them; what they are multiplied with is split by batch over the data axes."""
        mask: Mask | None = None
        for place, read in enumerate(node.reads):
            parameter = self._parameter(read.producer)
            if parameter is not None:
                other = 1 - place
                mask = (options.inputs[:, place] == np.array(self.read(parameter))).all(axis=-1)
                # Where the batch is not the first dim (experts come first), how it is split is left open.
                matrix = len(node.input_shapes[place].sizes) == 2
                for axis, code in enumerate(self.data):
                    if code and matrix:
                        mask &= options.inputs[:, other, axis] == code
        return mask

    def _parameter(self, producer: int) -> int | None:
        """The parameter behind a node: itself, or what a relay relays."""
        node = self.graph.nodes[producer]
        if node.kind == "parameter":
            return producer
        if node.is_view and len(node.reads) == 1 and node.output_shapes == node.input_shapes:
            return self._parameter(node.reads[0].producer)
        return None

    def _even(self, layout: Layout, shape: TensorShape | None) -> Layout:
        """The layout without the axes that do not divide the shape."""
        kept = list(layout)
        for axis in reversed(range(len(kept))):
            if shape is not None and is_even(np.array([kept], dtype=np.int8), shape, self.mesh)[0]:
                break
            kept[axis] = REPLICATE
        return tuple(kept)

    def _batch(self) -> int:
        shapes = [node.output_shapes[0] for node in self.graph.nodes if node.kind == "input"]
        return min((shape.sizes[0] for shape in shapes if shape is not None and shape.sizes), default=1)


class _Megatron(_Scheme):
    """Columns, rows and sequence over the last axis."""

    def __init__(self, question: StepQuestion, split: SplitWeights) -> None:
        super().__init__(question)
        self.column, self.row = re.compile(split.column), re.compile(split.row)
        if not any(self._split(name) for name in self.graph.gradients):
            raise DocumentInvalid(
                "megatron does not fit this step: no weight is called like one that it splits by columns or rows",
                where="--against",
                hint="compare with fsdp, or with a saved plan",
            )

    def _split(self, name: str) -> int:
        """The code of a weight on the last axis."""
        return shard(0) if self.column.search(name) else shard(1) if self.row.search(name) else REPLICATE

    def _data_layout(self) -> Layout:
        outer = self.mesh.sizes[:-1]
        fits = self._batch() % int(np.prod(outer)) == 0
        return (*((shard(0) if fits else REPLICATE) for _ in outer), REPLICATE)

    def held(self, index: int) -> Layout:
        return (*(REPLICATE for _ in self.mesh.sizes[:-1]), self._split(self.graph.names[index]))

    def read(self, index: int) -> Layout:
        return self.held(index)

    def state_mask(self, index: int, node: OperatorNode, options: OperatorOptions) -> Mask:
        # The distributed optimizer: as the parameter over the last axis, split any way over the others.
        return np.asarray(options.outputs[:, 0, -1] == self.held(index)[-1])

    def mask(self, index: int, node: OperatorNode, options: OperatorOptions) -> Mask | None:
        wide = node.output_shapes[0]
        if node.kind == "operator" and NORM.search(node.module_path) and wide is not None and len(wide.sizes) == 3:
            return _gives(options, self._even((*self.data[:-1], shard(1)), wide)) if node.phase == "forward" else None
        if node.kind == "input" and wide is not None and len(wide.sizes) == 3:
            return _gives(options, self._even((*self.data[:-1], shard(1)), wide))
        return super().mask(index, node, options)


class _FullySharded(_Scheme):
    """Everything over all axes; gathered for use."""

    def _data_layout(self) -> Layout:
        layout, batch = [REPLICATE] * self.mesh.num_axes, self._batch()
        for axis, size in enumerate(self.mesh.sizes):
            if batch % size == 0:
                layout[axis] = shard(0)
                batch //= size
        return tuple(layout)

    def held(self, index: int) -> Layout:
        return self._even((shard(0),) * self.mesh.num_axes, self.graph.nodes[index].output_shapes[0])

    def read(self, index: int) -> Layout:
        return (REPLICATE,) * self.mesh.num_axes


def _gives(options: OperatorOptions, layout: Layout) -> Mask:
    """Options whose first output has the layout; the relay and the sum of a norm may differ."""
    return np.asarray((options.outputs[:, 0] == np.array(layout)).all(axis=-1))
