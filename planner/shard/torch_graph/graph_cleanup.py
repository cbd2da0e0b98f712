"""The same step with fewer operators: identities, repeated expressions and results that nobody reads are gone.

Repeated expressions are merged within a phase only: what the backward pass makes again is not kept for it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from planner.shard.torch_graph.module_paths import PHASE

aten = torch.ops.aten

ALIASES = (aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default, aten.lift_fresh.default)
RESHAPES = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)
SWAPS = (aten.t.default, aten.transpose.int, aten.permute.default)
RELAY = aten.alias.default
"""What stands between a tensor and its several heavy readers: resharded once, read by all of them."""
HEAVY = (aten.einsum.default, aten.mm.default, aten.bmm.default, aten.convolution.default)


def phase_of(node: Node) -> str:
    """``forward`` or ``backward``."""
    return str(node.meta.get("custom", {}).get(PHASE, "forward"))


def shape_of(node: Any) -> tuple[int, ...] | None:
    """Shape of the one tensor that a node makes; None for anything else."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return tuple(int(size) for size in value.shape) if isinstance(value, torch.Tensor) else None


def _copied(node: Node, value: Any) -> Node | None:
    """What is written into a buffer: the new value itself, or in the buffer's dtype."""
    if not isinstance(value, Node) or shape_of(value) != shape_of(node):
        return None
    if _like(value) == _like(node):
        return value
    node.target, node.args, node.kwargs = aten._to_copy.default, (value,), {"dtype": _like(node)[1]}  # type: ignore[dict-item]
    return None


def _like(node: Node) -> tuple[tuple[int, ...] | None, object]:
    return shape_of(node), getattr(node.meta.get("val"), "dtype", None)


def clean(graph: GraphModule) -> None:
    """Remove identities, merge repeated expressions, drop dead operators, in place."""
    for _ in range(2):
        for node in list(graph.graph.nodes):
            same = _same_as(node)
            if same is not None:
                node.replace_all_uses_with(same)
        _merge_repeated(graph.graph)
        graph.graph.eliminate_dead_code()


def _same_as(node: Node) -> Node | None:
    """The node that has this node's value already."""
    if node.op != "call_function" or not node.args or not isinstance(node.args[0], Node):
        return None
    source = node.args[0]
    if node.target in ALIASES:
        return source
    if node.target is aten.copy.default:
        return _copied(node, node.args[1])
    if node.target in RESHAPES:
        while source.target in RESHAPES and shape_of(source) != shape_of(node) and isinstance(source.args[0], Node):
            source = source.args[0]
        return source if shape_of(source) == shape_of(node) else None
    if node.target in (aten.expand.default, aten.clone.default) and shape_of(source) == shape_of(node):
        return source if node.target is aten.expand.default else None
    if node.target in SWAPS and source.target is node.target and node.args[1:] == source.args[1:]:
        first = source.args[0]
        return first if node.target is not aten.permute.default and isinstance(first, Node) else None
    return None


def _merge_repeated(graph: Graph) -> None:
    known: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or _is_random(node.target):
            continue
        key = (node.target, phase_of(node), _frozen(node.args), _frozen(tuple(sorted(node.kwargs.items()))))
        first = known.setdefault(key, node)
        if first is not node:
            node.replace_all_uses_with(first)


def _is_random(target: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def _frozen(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(each) for each in value)
    if isinstance(value, (int, float, bool)):
        return (type(value), value)
    return value if isinstance(value, Node) else repr(value)


def insert_relays(graph: GraphModule) -> None:
    """Give tensors with several heavy readers in one phase a relay: gathered once for all of them."""
    order = {node: index for index, node in enumerate(graph.graph.nodes)}
    for node in list(graph.graph.nodes):
        if shape_of(node) is None:
            continue
        for phase in ("forward", "backward"):
            readers = [user for user in node.users if user.target in HEAVY and phase_of(user) == phase]
            if len(readers) > 1:
                _relay(graph.graph, node, readers, min(readers, key=order.__getitem__))


def _relay(graph: Graph, node: Node, readers: list[Node], first: Node) -> None:
    with graph.inserting_before(first):
        relay = graph.call_function(RELAY, (node,))
    relay.meta = {"val": node.meta["val"], "custom": dict(first.meta.get("custom", {}))}
    for reader in readers:
        reader.replace_input_with(node, relay)
