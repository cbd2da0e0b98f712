"""From a proved step to the document: seconds, bytes and placements in words."""

from __future__ import annotations

from collections import Counter

from planner.shard.folding import FoldedGraph
from planner.shard.operator_graph import OperatorGraph, OperatorNode
from planner.shard.placed_step import only_option
from planner.shard.placement import Layout, words_of
from planner.shard.prove import ProvedStep
from planner.shard.redistribution import PICOSECONDS
from planner.shard.selection_tables import output_bytes
from planner.shard.sharding_plan import (
    InputPlacement,
    OperatorPlacement,
    OutputPlacement,
    ParameterPlacement,
    RepeatedBlocks,
    ShardingCosts,
    ShardingPlan,
    TensorEdge,
    TracedModule,
)

ASSUMPTIONS = (
    "every operator is a kernel of its own, and resharding does not overlap with compute",
    "a tensor with several matrix products as readers is resharded once a phase for all of them",
    "gradients are kept in fp32 beside the optimizer's states for the whole step",
)


def assemble(proved: ProvedStep, traced: TracedModule, cluster: str) -> ShardingPlan:
    """The immutable answer."""
    graph = proved.question.graph
    return ShardingPlan(
        traced=traced,
        cluster=cluster,
        mesh=proved.question.mesh.axes,
        optimizer=proved.question.state.optimizer,
        status="optimal" if proved.bill.total_ps <= proved.bound_ps else "feasible",
        bound_s=proved.bound_ps / PICOSECONDS,
        gap=proved.gap,
        costs=_costs(proved),
        parameters=tuple(_parameter(proved, index) for index in _of_kind(graph, "parameter", "buffer")),
        inputs=tuple(_input(proved, index) for index in _of_kind(graph, "input")),
        operators=tuple(_operator(proved, index) for index in _of_kind(graph, "operator")),
        outputs=_outputs(proved),
        repeated=_repeated(graph, proved.folded),
        provenance=_provenance(proved),
        assumptions=ASSUMPTIONS + _unsharded(graph),
    )


def _of_kind(graph: OperatorGraph, *kinds: str) -> list[int]:
    return [index for index, node in enumerate(graph.nodes) if node.kind in kinds]


def _costs(proved: ProvedStep) -> ShardingCosts:
    bill, memory = proved.bill, proved.memory
    phases: Counter[str] = Counter()
    for node, compute, edges in zip(proved.question.graph.nodes, bill.compute_ps, bill.edges_ps, strict=True):
        phases[node.phase] += compute + sum(edges)
    phases["backward"] += sum(bill.gradient_ps.values()) + sum(bill.results_ps)
    optimizer = sum(bill.update_ps.values()) + sum(bill.gather_ps.values())
    return ShardingCosts(
        total_s=bill.total_ps / PICOSECONDS,
        compute_s=(bill.total_ps - bill.resharding_ps) / PICOSECONDS,
        resharding_s=bill.resharding_ps / PICOSECONDS,
        forward_s=phases["forward"] / PICOSECONDS,
        backward_s=phases["backward"] / PICOSECONDS,
        optimizer_s=optimizer / PICOSECONDS,
        peak_memory_bytes=memory.peak_bytes,
        parameters_bytes=memory.parameters_bytes,
        states_bytes=memory.states_bytes,
        activations_bytes=memory.peak_bytes - memory.parameters_bytes - memory.states_bytes,
        capacity_bytes=proved.question.capacity_bytes,
    )


def _operator(proved: ProvedStep, index: int) -> OperatorPlacement:
    graph, placed = proved.question.graph, proved.placed
    node = graph.nodes[index]
    variable = proved.tables.variables.of_node[index]
    return OperatorPlacement(
        name=node.name,
        target=node.target,
        module_path=node.module_path,
        phase=node.phase,
        inputs=tuple(_edge(proved, index, place) for place in range(len(node.reads))),
        outputs=tuple(
            None if shape is None else words_of(layout)
            for shape, layout in zip(node.output_shapes, placed.outputs[index], strict=True)
        ),
        compute_s=proved.bill.compute_ps[index] / PICOSECONDS,
        memory_bytes=int(output_bytes(node, placed.options(index), proved.question.mesh)[0]),
        live_from=index,
        live_until=graph.last_use[index] + 1,
        rule="dtensor" if node.has_rule else "replicated",
        num_options=len(proved.tables.options[variable]),
    )


def _edge(proved: ProvedStep, index: int, place: int) -> TensorEdge:
    read = proved.question.graph.nodes[index].reads[place]
    held, needed = proved.placed.outputs[read.producer][read.output], proved.placed.inputs[index][place]
    return TensorEdge(
        producer=read.name,
        held=words_of(held),
        needed=words_of(needed),
        resharding_s=proved.bill.edges_ps[index][place] / PICOSECONDS,
        collectives=collectives(proved, held, needed),
    )


def collectives(proved: ProvedStep, held: Layout, needed: Layout) -> tuple[str, ...]:
    """The steps between two layouts as people write them: ``all_gather(inner)``."""
    names = proved.question.mesh.names
    steps = proved.builder.redistribution.steps(held, needed) or ()
    return tuple(f"{step.kind}({names[step.axis]})" for step in steps)


def _parameter(proved: ProvedStep, index: int) -> ParameterPlacement:
    graph, placed, bill = proved.question.graph, proved.placed, proved.bill
    node, layout = graph.nodes[index], placed.outputs[index][0]
    state = placed.states.get(index)
    gradient = graph.gradients.get(graph.names[index])
    sizes, dtype = _shape(node)
    return ParameterPlacement(
        name=node.name,
        parameter=graph.names[index],
        kind="parameter" if node.kind == "parameter" else "buffer",
        shape=sizes,
        dtype=dtype,
        placements=words_of(layout),
        state_placements=words_of(layout if state is None else state),
        gradient_producer=None if gradient is None else gradient.name,
        gradient_resharding_s=bill.gradient_ps.get(index, 0) / PICOSECONDS,
        gradient_collectives=() if state is None else _gradient_collectives(proved, index, state),
        update_resharding_s=bill.gather_ps.get(index, 0) / PICOSECONDS,
        update_collectives=() if state is None else collectives(proved, state, layout),
        memory_bytes=int(output_bytes(node, placed.options(index), proved.question.mesh)[0]),
        state_bytes=0 if state is None else _state_bytes(proved, index, state),
    )


def _gradient_collectives(proved: ProvedStep, index: int, state: Layout) -> tuple[str, ...]:
    graph = proved.question.graph
    read = graph.gradients[graph.names[index]]
    return collectives(proved, proved.placed.outputs[read.producer][read.output], state)


def _state_bytes(proved: ProvedStep, index: int, state: Layout) -> int:
    return int(proved.builder.state_bytes(proved.question.graph.nodes[index], only_option(state))[0])


def _input(proved: ProvedStep, index: int) -> InputPlacement:
    node = proved.question.graph.nodes[index]
    sizes, dtype = _shape(node)
    return InputPlacement(
        name=proved.question.graph.names[index],
        shape=sizes,
        dtype=dtype,
        placements=words_of(proved.placed.outputs[index][0]),
        memory_bytes=int(output_bytes(node, proved.placed.options(index), proved.question.mesh)[0]),
    )


def _outputs(proved: ProvedStep) -> tuple[OutputPlacement, ...]:
    graph, placed = proved.question.graph, proved.placed
    numbers = {name: index for index, name in graph.names.items()}
    rows = []
    costs = iter(proved.bill.results_ps)
    for result in graph.results:
        kind, _, name = result.name.partition(":")
        if kind == "parameter":
            continue
        held = placed.outputs[result.read.producer][result.read.output]
        goal = (0,) * len(held) if kind == "loss" else placed.outputs[numbers[name]][0]
        label = f"gradient:{name}" if kind == "input" else result.name
        rows.append(
            OutputPlacement(
                name=label,
                producer=result.read.name,
                held=words_of(held),
                placements=words_of(goal),
                resharding_s=next(costs) / PICOSECONDS,
                collectives=collectives(proved, held, goal),
            )
        )
    return tuple(rows)


def _shape(node: OperatorNode) -> tuple[tuple[int, ...], str]:
    shape = node.output_shapes[0]
    return ((), "") if shape is None else (shape.sizes, shape.dtype)


def _repeated(graph: OperatorGraph, folded: FoldedGraph) -> tuple[RepeatedBlocks, ...]:
    copies = Counter(folded.representative)
    rows = []
    for group in folded.groups:
        inside = [
            index
            for index, node in enumerate(graph.nodes)
            if copies[index] == len(group) and f"{node.module_path}.".startswith(f"{group[-1]}.")
        ]
        rows.append(RepeatedBlocks(paths=group, num_operators=len(inside)))
    return tuple(rows)


def _provenance(proved: ProvedStep) -> dict[str, int]:
    sources: Counter[str] = Counter()
    for index, node in enumerate(proved.question.graph.nodes):
        if node.kind == "operator":
            sources[proved.builder.times.source_of(node, proved.placed.options(index))] += 1
    return dict(sorted(sources.items()))


def _unsharded(graph: OperatorGraph) -> tuple[str, ...]:
    targets = sorted({node.target for node in graph.nodes if not node.has_rule})
    if not targets:
        return ()
    return (f"PyTorch has no sharding rule for {', '.join(targets)}: every rank runs them whole",)
