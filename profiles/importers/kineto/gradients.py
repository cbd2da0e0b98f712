"""Matrix products of the backward pass: gradient of the input (dgrad) or of the weight (wgrad).

Forward ``[m, k] x [k, n]``: the input's gradient sums over the ``n`` outputs, the weight's over the ``m`` rows
(tokens).  So the inner size of the product decides where ``m`` and ``n`` differ.  The forward call is the one with the
``Sequence number`` of the autograd node.  Without it, or where ``m = n``: of two products in one node the first is the
gradient of the input (the order of autograd's formulas, and of Megatron's linear layer); a single one is that of the
weight if its first operand is a transposed view (``grad.t() @ input``), else it stays "backward".  Batched products
have no weight: "backward".  A grouped product of two plain matrices is the gradient of the weights, one with the
weights inside an autograd node that of the input; both are told in the sizes of their forward.
Source: pytorch/pytorch tools/autograd/derivatives.yaml (mm, addmm), FunctionsManual.cpp (mm_mat1_grad, mm_mat2_grad).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec

from profiles.importers.kineto.call_tree import Call
from profiles.importing.torch_shapes import CallShape
from profiles.observations.records import Phase

_FORWARD_UNSURE = (0, 0)


@dataclass(slots=True)
class _Product:
    index: int
    call: Call
    shape: CallShape


@dataclass(slots=True)
class MatmulGradients:
    """All matrix products of one rank."""

    _nodes: dict[int, tuple[Call, list[_Product]]] = field(default_factory=dict)
    _forward: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, index: int, call: Call, shape: CallShape, node: tuple[int, Call] | None, node_name: str) -> None:
        """Take one product; ``node`` is the autograd node that it runs in, None in the forward pass."""
        if "batch_size" in shape.shape or "Bmm" in node_name:
            return
        if node is not None:
            self._nodes.setdefault(node[0], (node[1], []))[1].append(_Product(index, call, shape))
            return
        number = call.arguments.sequence_number if call.arguments is not None else None
        if not isinstance(number, int) or "m" not in shape.shape:
            return
        sizes = (shape.shape["m"], shape.shape["n"])
        # Threads count on their own: two forwards of different size under one number tell nothing.
        if self._forward.setdefault(number, sizes) != sizes:
            self._forward[number] = _FORWARD_UNSURE

    def phases(self) -> dict[int, Phase]:
        """Phase by product, for those of the backward pass that can be told apart."""
        found: dict[int, Phase] = {}
        for node, products in self._nodes.values():
            products.sort(key=lambda each: each.call.start_ns)
            number = node.arguments.sequence_number if node.arguments is not None else None
            forward = self._forward.get(number, _FORWARD_UNSURE) if isinstance(number, int) else _FORWARD_UNSURE
            for position, product in enumerate(products):
                phase = _by_sizes(product.shape, forward) or _by_order(position, products)
                if phase is not None:
                    found[product.index] = phase
        return found


def _by_sizes(shape: CallShape, forward: tuple[int, int]) -> Phase | None:
    rows, outputs = forward
    inner = shape.shape.get("k")
    if forward == _FORWARD_UNSURE or inner is None or rows == outputs:
        return None
    return "dgrad" if inner == outputs else "wgrad" if inner == rows else None


def _by_order(position: int, products: list[_Product]) -> Phase | None:
    if len(products) == 2:
        return "dgrad" if position == 0 else "wgrad"
    if len(products) == 1 and _is_transposed(products[0].call):
        return "wgrad"
    return None


def _is_transposed(call: Call) -> bool:
    """Whether the first operand is a transposed view: strides ``[1, x]`` with x above 1."""
    strides = bytes(call.arguments.strides) if call.arguments is not None else b""
    try:
        found = msgspec.json.decode(strides) if strides else []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    first = found[0] if isinstance(found, list) and found else None
    if not (isinstance(first, list) and len(first) == 2 and all(isinstance(each, int) for each in first)):
        return False
    return bool(first[0] == 1 and first[1] > 1)


@dataclass(slots=True)
class GroupedGradients:
    """All grouped matrix products of one rank."""

    _nodes: dict[int, list[_Product]] = field(default_factory=dict)
    _alone: list[_Product] = field(default_factory=list)

    def add(self, index: int, call: Call, shape: CallShape, node: tuple[int, Call] | None) -> None:
        """Take one product; ``node`` is the autograd node that it runs in, None in the forward pass."""
        products = self._alone if node is None else self._nodes.setdefault(node[0], [])
        products.append(_Product(index, call, shape))

    def found(self) -> dict[int, tuple[Phase, CallShape]]:
        """Phase and sizes of the forward by product, for the gradients."""
        found: dict[int, tuple[Phase, CallShape]] = {
            each.index: ("wgrad", each.shape) for each in self._alone if each.shape.grouped_by == "inner"
        }
        for products in self._nodes.values():
            inputs = {each.index: _exchanged(each.shape) for each in products if each.shape.grouped_by == "rows"}
            found.update({index: ("dgrad", shape) for index, shape in inputs.items()})
            forward = {(shape.shape["n"], shape.shape["k"]) for shape in inputs.values()}
            for each in products:
                if each.shape.grouped_by == "inner":
                    sizes = each.shape.shape
                    turned = forward == {(sizes["k"], sizes["n"])}
                    found[each.index] = ("wgrad", _exchanged(each.shape) if turned else each.shape)
        return found


def _exchanged(shape: CallShape) -> CallShape:
    return replace(shape, shape={**shape.shape, "n": shape.shape["k"], "k": shape.shape["n"]})
