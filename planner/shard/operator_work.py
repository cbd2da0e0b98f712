"""The time of an operator on the part that one device holds: whole picoseconds for every option of an operator.

Roofline of ``planner.predict.cost``: products at the device's rate for their local shape or over memory bandwidth,
whichever is longer; attention by kernel and device generation; everything else moves its local inputs and outputs once,
a kernel of its own each, as eager PyTorch runs it.  Measured profiles replace the datasheet where they have the shape.
Shape letters: K options, A axes.
"""

from __future__ import annotations

import numpy as np

from planner.predict.cost.attention_time import attention_seconds
from planner.predict.cost.efficiency import WIDE_ELEMENT_BYTES
from planner.predict.cost.hardware import Hardware
from planner.shard.mesh_shapes import MeshShape
from planner.shard.operator_graph import OperatorNode
from planner.shard.options import OperatorOptions, local_bytes, local_sizes
from planner.shard.redistribution import PICOSECONDS
from profiles.prediction.rungs import Rung
from solver.arrays import Array, Ints


class OperatorTimes:
    """Compute times on one mesh of one kind of device; ``precision`` is that of the products."""

    def __init__(self, mesh: MeshShape, hardware: Hardware, precision: str) -> None:
        self.mesh, self.hardware = mesh, hardware
        # The rates take elements as 16 bit wide; bytes are counted as they are here.
        self._byte_scale = WIDE_ELEMENT_BYTES.get(precision, 2.0) / 2.0

    def times_ps(self, node: OperatorNode, options: OperatorOptions) -> Ints:
        """Picoseconds of each option: int64[K]."""
        seconds = self.hardware.factors.compute * self._seconds(node, options)
        return np.rint(seconds * PICOSECONDS).astype(np.int64)

    def source_of(self, node: OperatorNode, options: OperatorOptions) -> str:
        """Where the time of this operator comes from: ``measured``, ``datasheet`` or ``free``."""
        kind, measured = node.work.kind, self.hardware.rates.measured
        if kind in ("view", "none"):
            return "free"
        if measured is None or kind in ("attention", "convolution"):
            return "datasheet"
        if kind == "contraction":
            m, n, k, products = (each[:1] for each in self._contraction(node, options))
            found = measured.matmul(m, n, k, products)
        else:
            found = measured.moved("", self._moved(node, options)[:1])
        return "measured" if found.rung[0] <= Rung.TRANSFER else "datasheet"

    def memory_s(self, moved_bytes: Array) -> Array:
        """Seconds to move so many bytes through memory."""
        return self.hardware.rates.memory_s(moved_bytes / self._byte_scale)

    def _seconds(self, node: OperatorNode, options: OperatorOptions) -> Array:
        kind = node.work.kind
        if kind in ("view", "none") or not len(options):
            return np.zeros(len(options))
        if kind == "contraction":
            return self.hardware.rates.matmul_s(*self._contraction(node, options))
        if kind == "attention":
            return self._attention_s(node, options)
        if kind == "convolution":
            return self._convolution_s(node, options)
        return self.memory_s(self._moved(node, options))

    def _contraction(self, node: OperatorNode, options: OperatorOptions) -> tuple[Array, Array, Array, Array]:
        """Rows, columns, depth and number of local products: [K] each."""
        texts, out = node.work.equation.split("->")
        left, right = texts.split(",")
        sizes: dict[str, Array] = {}
        for index, letters in enumerate((left, right)):
            local = local_sizes(options.inputs[:, index], node.input_shapes[index], self.mesh)
            sizes |= {letter: local[:, dim].astype(np.float64) for dim, letter in enumerate(letters)}
        one = np.ones(len(options))

        def product(letters: set[str]) -> Array:
            return np.prod([sizes[letter] for letter in sorted(letters)], axis=0) * one if letters else one

        first, second, made = set(left), set(right), set(out)
        return (
            product(first & made - second),
            product(second & made - first),
            product(first & second - made),
            product(first & second & made),
        )

    def _attention_s(self, node: OperatorNode, options: OperatorOptions) -> Array:
        backward = node.work.passes > 1
        query = local_sizes(options.inputs[:, int(backward)], node.input_shapes[int(backward)], self.mesh)
        keys = node.input_shapes[int(backward) + 1].sizes[2]
        batch, heads, length, width = (query[:, dim].astype(np.float64) for dim in range(4))
        scores = batch * heads * length * keys
        forward_s, backward_s = attention_seconds(
            self.hardware.physics.attention,
            self.hardware.pool.device.architecture,
            self.hardware.rates,
            flops=4.0 * scores * width * (0.5 if node.work.causal else 1.0),
            scores=scores,
            products=batch * heads,
            longest=float(max(keys, node.input_shapes[int(backward)].sizes[2])),
            head_dim=float(width[0]),
            dropout=False,
        )
        return backward_s if backward else forward_s

    def _convolution_s(self, node: OperatorNode, options: OperatorOptions) -> Array:
        """An implicit product: outputs x channels out x (channels in x window), once or for both gradients."""
        backward = node.phase == "backward" and len(node.output_shapes) > 1
        weight_at, image_at = (2, 0) if backward else (1, -1)
        weight = local_sizes(options.inputs[:, weight_at], node.input_shapes[weight_at], self.mesh).astype(np.float64)
        shape = node.input_shapes[0] if backward else node.output_shapes[0]
        codes = options.inputs[:, image_at] if backward else options.outputs[:, 0]
        if shape is None:
            return np.zeros(len(options))
        image = local_sizes(codes, shape, self.mesh).astype(np.float64)
        rows = image[:, 0] * np.prod(image[:, 2:], axis=1)
        groups = np.full(len(options), float(node.work.groups))
        depth = np.prod(weight[:, 1:], axis=1)
        return node.work.passes * self.hardware.rates.matmul_s(rows, image[:, 1] / groups, depth, groups)

    def _moved(self, node: OperatorNode, options: OperatorOptions) -> Array:
        moved = np.zeros(len(options))
        for index, shape in enumerate(node.input_shapes):
            moved += local_bytes(options.inputs[:, index], shape, self.mesh)
        for index, output in enumerate(node.output_shapes):
            if output is not None:
                moved += local_bytes(options.outputs[:, index], output, self.mesh)
        return moved
