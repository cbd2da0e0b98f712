"""Matrix products without flattened tokens: ``view, mm, view`` becomes one ``einsum`` over the tensor's own dims.

PyTorch flattens [batch, sequence, hidden] to [tokens, hidden] before each ``mm``, and a flattened dim can be sharded
only where its outermost part is.  As a contraction over letters, batch and sequence shard independently, forward
(``bsk,nk->bsn``) as in both gradients (``bsn,nk->bsk``, ``bsn,bsk->nk``), and transposed weights need no operator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from planner.shard.torch_graph.graph_cleanup import RESHAPES, shape_of

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Operand:
    """A matrix as it really is: a tensor whose dims ``rows`` and ``columns`` are the matrix's two."""

    base: Node
    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def sizes(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """Sizes of some dims of the base."""
        shape = shape_of(self.base) or ()
        return tuple(shape[dim] for dim in dims)


def contract(graph: GraphModule) -> None:
    """Rewrite every ``mm`` of the graph, in place."""
    for node in list(graph.graph.nodes):
        if node.target is aten.mm.default:
            _rewrite(graph.graph, node)
    graph.graph.eliminate_dead_code()


def _operand(node: Node) -> Operand | None:
    """Follow transposes, then at most one flattening of leading dims."""
    swapped = False
    while node.target is aten.t.default or (node.target is aten.transpose.int and len(shape_of(node) or ()) == 2):
        swapped, node = not swapped, node.args[0]  # type: ignore[assignment]
    rows: tuple[int, ...] = (0,)
    columns: tuple[int, ...] = (1,)
    if node.target in RESHAPES and isinstance(node.args[0], Node):
        split = _flattened(shape_of(node.args[0]), shape_of(node))
        if split is not None:
            node = node.args[0]
            rows, columns = tuple(range(split)), tuple(range(split, len(shape_of(node) or ())))
    if len(shape_of(node) or ()) < 2:
        return None
    return Operand(node, columns, rows) if swapped else Operand(node, rows, columns)


def _flattened(wide: tuple[int, ...] | None, flat: tuple[int, ...] | None) -> int | None:
    """How many leading dims of ``wide`` make the rows of the matrix ``flat``, if only those are joined."""
    if wide is None or flat is None or len(flat) != 2 or len(wide) < 3:
        return None
    split = len(wide) - 1
    return split if math.prod(wide[:split]) == flat[0] and wide[-1] == flat[1] else None


def _rewrite(graph: Graph, node: Node) -> None:
    left, right = (_operand(each) for each in node.args[:2])  # type: ignore[arg-type]
    if left is None or right is None:
        return
    matched = _matched(left, right, node)
    if matched is None:
        return
    left, right = matched
    letters = iter(ascii_lowercase)
    m, k, n = (
        [next(letters) for _ in dims] for dims in (left.rows, left.columns, right.columns)
    )  # rows, contracted, columns
    texts = [_text(left, m, k), _text(right, k, n)]
    shape = [*left.sizes(left.rows), *right.sizes(right.columns)]
    with graph.inserting_before(node):
        made = graph.call_function(
            aten.einsum.default, (f"{texts[0]},{texts[1]}->{''.join(m + n)}", [left.base, right.base])
        )
        flat = graph.call_function(aten.view.default, (made, list(shape_of(node) or ())))
    value = node.meta["val"]
    made.meta = {"val": value.new_empty(shape), "custom": node.meta.get("custom", {})}
    flat.meta = {"val": value, "custom": node.meta.get("custom", {})}
    node.replace_all_uses_with(flat)
    graph.erase_node(node)


def _matched(left: Operand, right: Operand, node: Node) -> tuple[Operand, Operand] | None:
    """Both operands with the same contracted dims; one that differs alone stays flat."""
    if left.sizes(left.columns) == right.sizes(right.rows):
        return left, right
    flat_left, flat_right = _flat(node.args[0]), _flat(node.args[1])
    for one, other in ((flat_left, right), (left, flat_right), (flat_left, flat_right)):
        if one.sizes(one.columns) == other.sizes(other.rows):
            return one, other
    return None


def _flat(node: Any) -> Operand:
    return Operand(node, (0,), (1,))


def _text(operand: Operand, rows: list[str], columns: list[str]) -> str:
    named = dict(zip(operand.rows, rows, strict=True)) | dict(zip(operand.columns, columns, strict=True))
    return "".join(named[dim] for dim in sorted(named))
