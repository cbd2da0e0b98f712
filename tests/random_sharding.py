"""A legal sharding plan chosen by dice: any placements that PyTorch's rules allow, with no costs.

The solver's best plan uses few of the placements that a plan may have; these use many.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from planner.shard.operator_graph import AxisRule, OperatorGraph, OperatorNode, TensorShape
from planner.shard.placement import Layout, words_of
from planner.shard.sharding_plan import (
    InputPlacement,
    MeshAxis,
    OperatorPlacement,
    OutputPlacement,
    ParameterPlacement,
    ShardingCosts,
    ShardingPlan,
    TensorEdge,
    TracedModule,
)

NO_COSTS = ShardingCosts(
    total_s=0,
    compute_s=0,
    resharding_s=0,
    forward_s=0,
    backward_s=0,
    optimizer_s=0,
    peak_memory_bytes=0,
    parameters_bytes=0,
    states_bytes=0,
    activations_bytes=0,
    capacity_bytes=None,
)


def random_plan(
    graph: OperatorGraph, traced: TracedModule, mesh: Sequence[int], seed: int, optimizer: str = "adamw"
) -> ShardingPlan:
    """Every node takes rules by dice, one an axis; whatever edges that makes are part of the plan."""
    dice = _Dice(graph, tuple(mesh), random.Random(seed))
    drawn = [dice.outputs(node) for node in graph.nodes]
    # What is no tensor has no layout; nothing reads it.
    outputs = [(read, [layout or () for layout in made]) for read, made in drawn]
    parameters, inputs, operators = [], [], []
    gradients = graph.gradients
    for index, node in enumerate(graph.nodes):
        (placed, *_) = outputs[index][1]
        if node.kind in ("parameter", "buffer"):
            name = graph.names[index]
            gradient = gradients.get(name)
            state = dice.finer(placed, node.output_shapes[0])
            producer = graph.nodes[gradient.producer].name if gradient is not None else None
            parameters.append(_parameter(node, name, placed, state, producer))
        elif node.kind == "input":
            shape = node.output_shapes[0]
            assert shape is not None
            inputs.append(
                InputPlacement(
                    name=graph.names[index], shape=shape.sizes, dtype=shape.dtype, placements=words_of(placed),
                    memory_bytes=0,
                )
            )  # fmt: skip
        else:
            edges = tuple(
                TensorEdge(
                    producer=read.name,
                    held=words_of(outputs[read.producer][1][read.output]),
                    needed=words_of(needed),
                    resharding_s=0,
                )
                for read, needed in zip(node.reads, outputs[index][0], strict=True)
            )
            operators.append(_operator(node, edges, drawn[index][1]))
    results = tuple(
        OutputPlacement(name=each.name, producer=each.read.name, held=held, placements=held)
        for each in graph.results
        if not each.name.startswith("parameter:")
        for held in [words_of(outputs[each.read.producer][1][each.read.output])]
    )
    return ShardingPlan(
        traced=traced.model_copy(update={"graph_hash": graph.graph_hash}),
        cluster="none",
        mesh=_axes(mesh),
        optimizer=optimizer,
        status="feasible",
        bound_s=0,
        gap=0,
        costs=NO_COSTS,
        parameters=tuple(parameters),
        inputs=tuple(inputs),
        operators=tuple(operators),
        outputs=results,
    )


@dataclass(slots=True)
class _Dice:
    """Draws rules, again where shards would be uneven."""

    graph: OperatorGraph
    mesh: tuple[int, ...]
    draw: random.Random
    tries: int = field(default=40)

    def outputs(self, node: OperatorNode) -> tuple[list[Layout], list[Layout | None]]:
        """Layouts of inputs and outputs of one node."""
        for _ in range(self.tries):
            rules = [self._drawn(node.rules[size]) for size in self.mesh]
            layouts_in = [tuple(rule.inputs[index] for rule in rules) for index in range(len(node.reads))]
            layouts_out: list[Layout | None] = [
                None if shape is None else tuple(rule.outputs[index] or 0 for rule in rules)
                for index, shape in enumerate(node.output_shapes)
            ]
            shapes = (*node.input_shapes, *node.output_shapes)
            layouts = (*layouts_in, *layouts_out)
            if all(self.even(layout, shape) for layout, shape in zip(layouts, shapes, strict=True)):
                return layouts_in, layouts_out
        whole = (0,) * len(self.mesh)
        return [whole] * len(node.reads), [None if shape is None else whole for shape in node.output_shapes]

    def even(self, layout: Layout | None, shape: TensorShape | None) -> bool:
        """Whether every dim divides by the axes that shard it, and partial kinds are not mixed."""
        if layout is None or shape is None:
            return True
        sizes = list(shape.sizes)
        for code, ranks in zip(layout, self.mesh, strict=True):
            if code > 0:
                if sizes[code - 1] % ranks:
                    return False
                sizes[code - 1] //= ranks
        return len({code for code in layout if code < 0}) <= 1

    def finer(self, layout: Layout, shape: TensorShape | None) -> Layout:
        """Optimizer states: sharded further on some axes where that is even."""
        state = tuple(self.draw.choice((code, 1)) if code == 0 else code for code in layout)
        dims = len(shape.sizes) if shape is not None else 0
        return state if dims and self.even(state, shape) else layout

    def _drawn(self, rules: Sequence[AxisRule]) -> AxisRule:
        """Running whole is the first rule; it is drawn seldom where there are others."""
        return self.draw.choice(rules[1:]) if len(rules) > 1 and self.draw.random() < 0.85 else rules[0]


def _axes(mesh: Sequence[int]) -> tuple[MeshAxis, ...]:
    def strides() -> Iterator[int]:
        for index in range(len(mesh)):
            stride = 1
            for size in mesh[index + 1 :]:
                stride *= size
            yield stride

    return tuple(
        MeshAxis(name=f"axis{index}", size=size, stride=stride)
        for index, (size, stride) in enumerate(zip(mesh, strides(), strict=True))
    )


def _parameter(
    node: OperatorNode, name: str, placed: Layout, state: Layout, gradient: str | None
) -> ParameterPlacement:
    shape = node.output_shapes[0]
    assert shape is not None
    return ParameterPlacement(
        name=node.name,
        parameter=name,
        kind="parameter" if node.kind == "parameter" else "buffer",
        shape=shape.sizes,
        dtype=shape.dtype,
        placements=words_of(placed),
        state_placements=words_of(state),
        gradient_producer=gradient,
        memory_bytes=0,
    )


def _operator(node: OperatorNode, edges: tuple[TensorEdge, ...], outputs: list[Layout | None]) -> OperatorPlacement:
    return OperatorPlacement(
        name=node.name,
        target=node.target,
        module_path=node.module_path,
        phase=node.phase,
        inputs=edges,
        outputs=tuple(None if layout is None else words_of(layout) for layout in outputs),
        compute_s=0,
        memory_bytes=0,
        live_from=0,
        live_until=0,
        rule="dtensor" if node.has_rule else "replicated",
        num_options=1,
    )
