"""The traced FX graph as an ``OperatorGraph``: plain data with shapes, rules and kinds of work."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import Node
from torch.utils import _pytree as pytree

from planner.shard.operator_graph import (
    AxisRule,
    Kind,
    OperatorGraph,
    OperatorNode,
    Phase,
    StepResult,
    TensorRead,
    TensorShape,
    Work,
)
from planner.shard.placement import REPLICATE, shard
from planner.shard.torch_graph.contractions import contract
from planner.shard.torch_graph.graph_cleanup import RELAY, clean, insert_relays, phase_of
from planner.shard.torch_graph.joint_step import JointStep, trace_joint_step
from planner.shard.torch_graph.module_paths import PATH
from planner.shard.torch_graph.module_source import ModuleSource
from planner.shard.torch_graph.sharding_rules import FLASH_BACKWARD, FLASH_FORWARD, axis_rules, has_rule

aten = torch.ops.aten

VIEWS = frozenset(
    (
        aten.view, aten._unsafe_view, aten.reshape, aten.permute, aten.transpose, aten.t, aten.expand, aten.squeeze,
        aten.unsqueeze, aten.slice, aten.select, aten.alias, aten.detach, aten.split, aten.split_with_sizes,
        aten.unbind, aten.diagonal,
    )
)  # fmt: skip
FREE = frozenset((aten.scalar_tensor,))


def traced_step(source: ModuleSource) -> JointStep:
    """Trace and tidy one training step: the graph whose node names a sharding plan uses.  Deterministic."""
    step = trace_joint_step(source)
    clean(step.graph)
    contract(step.graph)
    clean(step.graph)
    insert_relays(step.graph)
    return step


def operator_graph(step: JointStep, divisors: Sequence[int]) -> OperatorGraph:
    """The step as plain data, with the rules of axes whose sizes are multiples of each of ``divisors``."""
    reader = _Reader(tuple(divisors))
    graph = step.graph.graph
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            reader.add_placeholder(node, step)
        elif node.op == "call_function":
            reader.add_operator(node)
    output = next(node for node in graph.nodes if node.op == "output")
    wanted = zip(step.results, cast("Sequence[Node]", output.args[0]), strict=True)
    results = tuple(StepResult(name, reader.read_of(node)) for name, node in wanted)
    return OperatorGraph(tuple(reader.nodes), results, reader.names)


class _Reader:
    """Numbers nodes in order; a getitem is the output that it takes."""

    def __init__(self, divisors: tuple[int, ...]) -> None:
        self.divisors = divisors
        self.nodes: list[OperatorNode] = []
        self.names: dict[int, str] = {}
        self._numbers: dict[Node, tuple[int, int]] = {}
        self._rules: dict[Any, tuple[AxisRule, ...]] = {}
        self._placeholders = 0

    def read_of(self, node: Node) -> TensorRead:
        number, output = self._numbers[node]
        return TensorRead(number, output, node.name)

    def add_placeholder(self, node: Node, step: JointStep) -> None:
        shape = _shape(node.meta.get("val"))
        names = [*step.parameters, *step.buffers, *step.inputs]
        kinds = ["parameter"] * len(step.parameters) + ["buffer"] * len(step.buffers) + ["input"] * len(step.inputs)
        if node.op == "placeholder":
            kind, name = cast("Kind", kinds[self._placeholders]), names[self._placeholders]
            self._placeholders += 1
        else:
            kind, name = "buffer", str(node.target)
        dims = len(shape.sizes) if shape is not None else 0
        codes = [REPLICATE, *(shard(dim) for dim in range(dims))]
        rules = tuple(AxisRule((), (code,)) for code in codes)
        self.names[len(self.nodes)] = name
        made = OperatorNode(
            node.name, kind, kind, name.rpartition(".")[0], "forward", (), (), (shape,), Work("none"),
            dict.fromkeys(self.divisors, rules), True, f"{kind}|{shape}",
        )  # fmt: skip
        self._append(node, made)

    def add_operator(self, node: Node) -> None:
        if node.target is operator.getitem:
            number, _ = self._numbers[cast("Node", node.args[0])]
            self._numbers[node] = (number, cast("int", node.args[1]))
            return
        flat = [each for each in pytree.tree_leaves((node.args, node.kwargs)) if isinstance(each, Node)]
        value = node.meta.get("val")
        outputs = tuple(_shape(each) for each in (value if isinstance(value, (list, tuple)) else [value]))
        signature = _signature(node)
        made = OperatorNode(
            name=node.name,
            kind="operator",
            target=str(node.target),
            module_path=str(node.meta.get("custom", {}).get(PATH, "")),
            phase=cast("Phase", phase_of(node)),
            reads=tuple(self.read_of(each) for each in flat),
            input_shapes=tuple(cast("TensorShape", _shape(each.meta.get("val"))) for each in flat),
            output_shapes=outputs,
            work=_work(node),
            rules={divisor: self._rules_of(node, signature, divisor) for divisor in self.divisors},
            has_rule=not flat or (isinstance(node.target, torch._ops.OpOverload) and has_rule(node.target)),
            signature=signature,
        )
        self._append(node, made)

    def _append(self, node: Node, made: OperatorNode) -> None:
        self._numbers[node] = (len(self.nodes), 0)
        self.nodes.append(made)

    def _rules_of(self, node: Node, signature: str, size: int) -> tuple[AxisRule, ...]:
        key = (signature, size)
        if key not in self._rules:
            args, kwargs = pytree.tree_map_only(Node, lambda each: each.meta["val"], (node.args, node.kwargs))
            self._rules[key] = axis_rules(node.target, args, kwargs, node.meta.get("val"), size)  # type: ignore[arg-type]
        return self._rules[key]


def _shape(value: Any) -> TensorShape | None:
    if not isinstance(value, Tensor):
        return None
    return TensorShape(
        tuple(int(size) for size in value.shape), value.element_size(), str(value.dtype).removeprefix("torch.")
    )


def _signature(node: Node) -> str:
    args, kwargs = pytree.tree_map_only(Node, lambda each: str(_shape(each.meta.get("val"))), (node.args, node.kwargs))
    return f"{node.target}|{args}|{sorted(kwargs.items())}"


def _work(node: Node) -> Work:
    target = node.target
    packet = getattr(target, "overloadpacket", None)
    if target is aten.einsum.default:
        return Work("contraction", equation=str(node.args[0]))
    if target is aten.mm.default:
        return Work("contraction", equation="mk,kn->mn")
    if target is aten.bmm.default:
        return Work("contraction", equation="bmk,bkn->bmn")
    if target in (FLASH_FORWARD, FLASH_BACKWARD):
        backward = target is FLASH_BACKWARD
        causal = node.args[7 if backward else 4] if len(node.args) > (7 if backward else 4) else False
        return Work("attention", causal=bool(causal), passes=2 if backward else 1)
    if target is aten.convolution.default:
        return Work("convolution", groups=int(cast("int", node.args[8])))
    if target is aten.convolution_backward.default:
        mask = cast("Sequence[bool]", node.args[10])
        return Work("convolution", groups=int(cast("int", node.args[9])), passes=int(mask[0]) + int(mask[1]))
    if target is RELAY or packet in VIEWS:
        return Work("view")
    return Work("none") if packet in FREE else Work("moves")
