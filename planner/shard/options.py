"""The ways to run one operator on the whole mesh: rules of single axes, in every even combination.

An option gives every tensor argument and every output a layout: one placement code per axis.  Two axes may shard one
dim; its size must then be a multiple of both together.  Shape letters: K options, T tensors, A axes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.errors import DocumentInvalid
from planner.shard.mesh_shapes import MeshShape
from planner.shard.operator_graph import AxisRule, OperatorNode, TensorShape
from planner.shard.placement import Layout

Codes = NDArray[np.int8]
Counts = NDArray[np.int64]

MOST_OPTIONS = 100_000
"""Beyond this the tables would not fit; only operators with dozens of rules on four axes come near."""


@dataclass(frozen=True)
class OperatorOptions:
    """The options of one operator: layouts of its inputs [K, T_in, A] and outputs [K, T_out, A].

    An output that is no tensor has the layout of all zeros.
    """

    inputs: Codes
    outputs: Codes

    def __len__(self) -> int:
        return int(self.outputs.shape[0])

    def input_layout(self, option: int, index: int) -> Layout:
        """Layout that ``option`` needs of an input."""
        return tuple(int(code) for code in self.inputs[option, index])

    def output_layout(self, option: int, index: int) -> Layout:
        """Layout that ``option`` gives an output."""
        return tuple(int(code) for code in self.outputs[option, index])


def operator_options(node: OperatorNode, mesh: MeshShape) -> OperatorOptions:
    """All even options of ``node`` on ``mesh``, the one that runs it whole everywhere first."""
    rules = [node.rules[divisor] for divisor in mesh.divisors]
    combinations = np.prod([len(each) for each in rules])
    if combinations > MOST_OPTIONS:
        raise DocumentInvalid(
            f"operator {node.name} has {combinations:,} placements on {mesh.text}",
            where="--mesh",
            hint="use a mesh with fewer axes",
        )
    codes = _combined(rules)
    split = len(node.input_shapes)
    even = np.ones(len(codes), dtype=bool)
    for index, shape in enumerate((*node.input_shapes, *node.output_shapes)):
        if shape is not None:
            even &= is_even(codes[:, index], shape, mesh)
    codes = codes[even]
    return OperatorOptions(codes[:, :split], codes[:, split:])


def _combined(rules: list[tuple[AxisRule, ...]]) -> Codes:
    """Every combination of one rule an axis: [K, T, A]."""
    tables = [
        np.array([[*rule.inputs, *(code or 0 for code in rule.outputs)] for rule in each], dtype=np.int8)
        for each in rules
    ]
    picks = np.array(list(itertools.product(*(range(len(each)) for each in tables))), dtype=np.int64)
    return np.stack([table[picks[:, axis]] for axis, table in enumerate(tables)], axis=-1)


def is_even(codes: Codes, shape: TensorShape, mesh: MeshShape) -> NDArray[np.bool_]:
    """Whether each layout [K, A] cuts every dim into equal parts: [K]."""
    if not shape.sizes:
        return np.asarray(~np.any(codes > 0, axis=1))
    sizes = np.array(shape.sizes, dtype=np.int64)
    fits: NDArray[np.bool_] = np.all(sizes % shard_counts(codes, len(sizes), mesh) == 0, axis=1)
    return np.asarray(fits & (np.max(codes, axis=1) <= len(sizes)))


def shard_counts(codes: Codes, dims: int, mesh: MeshShape) -> Counts:
    """Into how many parts each layout [K, A] cuts each dim: [K, dims]."""
    counts = np.ones((len(codes), dims), dtype=np.int64)
    for axis, size in enumerate(mesh.sizes):
        for dim in range(dims):
            counts[codes[:, axis] == dim + 1, dim] *= size
    return counts


def local_sizes(codes: Codes, shape: TensorShape, mesh: MeshShape) -> Counts:
    """Sizes of the part that one device holds under each layout [K, A]: [K, dims]."""
    return np.array(shape.sizes, dtype=np.int64) // shard_counts(codes, len(shape.sizes), mesh)


def local_bytes(codes: Codes, shape: TensorShape, mesh: MeshShape) -> Counts:
    """Bytes that one device holds under each layout [K, A]: [K]."""
    sizes = local_sizes(codes, shape, mesh)
    return np.asarray(np.prod(sizes, axis=1, dtype=np.int64) * shape.element_bytes)
