from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from planner.errors import Conflict, DocumentInvalid, NoFeasiblePlan, NotFound
from planner.predict.cost.hardware import COMMUNICATOR_BYTES, FRAMEWORK_BYTES
from planner.shard.baselines import COMMON_NAMES, Baseline, SplitWeights, prove_baseline
from planner.shard.compare_plans import compare_plans
from planner.shard.explain_operator import explain_operator
from planner.shard.operator_graph import OperatorGraph
from planner.shard.placed_step import PlacedStep, bill, placed_step
from planner.shard.prove import ProvedStep, StepQuestion, prove, table_builder
from planner.shard.questions import best_mesh, sharding_plan
from planner.shard.selection_tables import SelectionTables
from planner.shard.sharding_plan import ShardingPlan
from planner.shard.torch_graph.module_source import ModuleSource, load_module
from planner.shard.words import module_summaries
from solver.selection.answer import Answer
from solver.selection.problem import FORBIDDEN, SelectionProblem
from tests.selection_milp import cost_of, solve_by_milp
from tests.shard_questions import ENGINE, SMALL_BLOCK, SMALL_MODEL, question_of, source_of

HERE = "tests.unit.planner.shard.test_prove"


class TinyNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4096, 4096))

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight).sum()

    def example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(8192, 4096),)


@pytest.fixture(scope="module")
def source() -> ModuleSource:
    return source_of("llama_block:LlamaBlock", **SMALL_BLOCK)


@pytest.fixture(scope="module")
def question(source: ModuleSource) -> StepQuestion:
    return question_of(source, "2x4")


@pytest.fixture(scope="module")
def proved(question: StepQuestion) -> ProvedStep:
    return prove(question, ENGINE)


@pytest.fixture(scope="module")
def plan(proved: ProvedStep, source: ModuleSource) -> ShardingPlan:
    return sharding_plan(proved, source, "dgx-h100")


def exhaustive(tables: SelectionTables) -> int:
    """Least cost of all combinations: one array with an axis for every variable."""
    problem = tables.problem
    counts = problem.option_counts.tolist()
    total = np.zeros(counts)
    for node, count in enumerate(counts):
        costs = problem.node_costs[problem.option_start[node] : problem.option_start[node + 1]]
        total += costs.reshape([count if axis == node else 1 for axis in range(len(counts))])
    for edge, (first, second) in enumerate(problem.edge_nodes.tolist()):
        table = problem.edge_costs[problem.edge_start[edge] : problem.edge_start[edge + 1]]
        table = table.reshape(counts[first], counts[second])
        if first > second:
            first, second, table = second, first, table.T  # noqa: PLW2901
        total += table.reshape([count if axis in (first, second) else 1 for axis, count in enumerate(counts)])
    return int(total.min())


def test_nothing_beats_the_plan_of_a_tiny_step() -> None:
    question = question_of(load_module(f"{HERE}:TinyNet"), "2")
    tables = table_builder(question).build()
    assert np.prod(tables.problem.option_counts) < 5_000_000
    found = prove(question, ENGINE)
    assert found.bill.total_ps == exhaustive(tables) == found.bound_ps


def test_the_bill_is_what_the_tables_say(question: StepQuestion) -> None:
    builder = table_builder(question)
    tables = builder.build()
    draw = np.random.default_rng(0)
    for _ in range(3):
        choice = tuple(int(draw.integers(count)) for count in tables.problem.option_counts)
        placed = placed_step(question.graph, tables, choice)
        total = bill(question.graph, placed, builder).total_ps
        said = cost_of(tables.problem, choice)
        assert total == said or min(total, said) >= FORBIDDEN


def test_an_independent_solver_finds_the_same_cost() -> None:
    sizes = {"hidden_size": 1024, "ffn_size": 2048, "heads": 8, "kv_heads": 8, "sequence": 2048, "batch": 4}
    question = question_of(source_of("llama_block:LlamaBlock", **sizes), "4")
    assert prove(question, solve_by_milp).bill.total_ps == prove(question, ENGINE).bill.total_ps


def test_memory_over_time_is_that_of_a_plain_walk(proved: ProvedStep) -> None:
    graph, placed = proved.question.graph, proved.placed
    steps = [*range(0, len(graph.nodes), 11), proved.memory.peak_step]
    slow = [memory_at(graph, placed, proved, step) for step in steps]
    assert proved.memory.total_bytes[steps].tolist() == slow


def memory_at(graph: OperatorGraph, placed: PlacedStep, proved: ProvedStep, step: int) -> int:
    """Bytes at one operator, tensor by tensor: which storages does something at or after this step still read?"""
    sizes = proved.question.mesh.sizes

    def part(shape: tuple[int, ...], element: int, layout: tuple[int, ...]) -> int:
        total = element
        for size in shape:
            total *= size
        for axis, code in enumerate(layout):
            total //= sizes[axis] if code > 0 else 1
        return total

    storage: list[int] = []
    for index, node in enumerate(graph.nodes):
        first = node.reads[0] if node.is_view else None
        shares = first is not None and placed.inputs[index][0] == placed.outputs[first.producer][first.output]
        storage.append(storage[first.producer] if first is not None and shares else index)
    total = proved.memory.parameters_bytes + proved.memory.states_bytes
    for index, node in enumerate(graph.nodes):
        if node.kind in ("parameter", "buffer") or storage[index] != index:
            continue
        users = [
            other
            for other, reader in enumerate(graph.nodes)
            if any(storage[read.producer] == index for read in reader.reads)
        ]
        if (index <= step or node.kind == "input") and max([index, *users]) >= step:
            shapes = node.input_shapes[:1] if node.is_view else node.output_shapes
            layouts = placed.inputs[index][:1] if node.is_view else placed.outputs[index]
            total += sum(
                part(shape.sizes, shape.element_bytes, layout)
                for shape, layout in zip(shapes, layouts, strict=True)
                if shape
            )
    node = graph.nodes[step]
    for place, read in enumerate(node.reads):
        needed, shape = placed.inputs[step][place], node.input_shapes[place]
        if placed.outputs[read.producer][read.output] != needed and not (node.is_view and place == 0):
            total += part(shape.sizes, shape.element_bytes, needed)
    return total


def test_less_memory_gives_a_plan_that_fits_and_costs_more(proved: ProvedStep) -> None:
    question = proved.question
    tight = FRAMEWORK_BYTES + 2 * COMMUNICATOR_BYTES + int(proved.memory.peak_bytes * 0.9)
    small = replace(question, hardware=replace(question.hardware, memory_bytes=tight), memory_margin=0.0)
    found = prove(small, ENGINE)
    assert found.memory.peak_bytes <= small.capacity_bytes < proved.memory.peak_bytes
    assert found.bill.total_ps >= proved.bill.total_ps


def test_no_memory_is_an_answer_that_names_operators(question: StepQuestion) -> None:
    small = replace(question, hardware=replace(question.hardware, memory_bytes=2_100_000_000))
    with pytest.raises(NoFeasiblePlan) as caught:
        prove(small, ENGINE)
    assert caught.value.binding == "memory"
    assert "more devices" in str(caught.value.hint)
    assert "GiB are needed at once" in str(caught.value)
    assert str(caught.value.where).startswith("operators ")


def test_placements_that_exclude_each_other_are_not_called_memory(question: StepQuestion) -> None:
    def without_one_edge(problem: SelectionProblem, time_limit_s: float) -> Answer:
        costs = problem.edge_costs.copy()
        costs[: problem.edge_start[1]] = FORBIDDEN
        return ENGINE(replace(problem, edge_costs=costs), time_limit_s)

    with pytest.raises(NoFeasiblePlan, match="go together") as caught:
        prove(question, without_one_edge)
    assert caught.value.binding.startswith("placements of ")


@pytest.mark.parametrize("name", ["megatron", "fsdp"])
def test_no_hand_written_plan_is_better(name: Baseline, proved: ProvedStep, source: ModuleSource) -> None:
    baseline = prove_baseline(name, proved.question, ENGINE)
    assert proved.bound_ps <= proved.bill.total_ps <= baseline.bill.total_ps
    plans = [sharding_plan(each, source, "dgx-h100") for each in (proved, baseline)]
    weights = {each.parameter: each.placements for each in plans[1].parameters}
    if name == "megatron":
        assert weights["attention.wq.weight"] == ("replicate", "shard:0")
        assert weights["attention.wo.weight"] == ("replicate", "shard:1")
        words = {each.module_path: each.in_words for each in module_summaries(plans[1])}
        assert words["feed_forward.w1 (weight)"] == "data-parallel (outer); column-parallel (inner)"
        assert words["feed_forward.w2 (weight)"] == "data-parallel (outer); row-parallel (inner)"
    else:
        assert weights["attention.wq.weight"] == ("shard:0", "shard:0")
    difference = compare_plans(*plans)
    assert difference.terms[0].delta == pytest.approx(plans[1].costs.total_s - plans[0].costs.total_s)
    assert difference.num_different > 0


def test_folding_two_layers_keeps_the_optimum() -> None:
    source = source_of("llama_block:Llama", **{**SMALL_MODEL, "layers": 2})
    folded = prove(question_of(source, "4"), ENGINE)
    whole = prove(question_of(source, "4", fold=False), ENGINE)
    assert folded.folded.groups == (("layers.0", "layers.1"),)
    assert folded.tables.problem.num_nodes < 0.8 * whole.tables.problem.num_nodes
    assert whole.bill.total_ps <= folded.bill.total_ps
    # Copies may differ where only one of them borders on the embedding or the head.
    assert folded.bill.total_ps <= 1.001 * whole.bill.total_ps


def test_folded_memory_is_that_of_the_whole_model() -> None:
    source = source_of("llama_block:Llama", **{**SMALL_MODEL, "layers": 4})
    found = prove(question_of(source, "4"), ENGINE)
    usage, problem = np.zeros(sum(found.folded.kept), dtype=np.int64), found.tables.problem
    for variable, option in enumerate(found.choice):
        begin, end = problem.live_from[variable], problem.live_until[variable]
        usage[begin:end] += problem.usages[problem.option_start[variable] + option]
    # The solver leaves out what resharding holds, and nothing else that matters.
    assert 0.75 * found.memory.peak_bytes <= usage.max() <= found.memory.peak_bytes


def test_the_plan_adds_up_and_reads_back(plan: ShardingPlan, proved: ProvedStep) -> None:
    costs = plan.costs
    assert costs.total_s == pytest.approx(costs.forward_s + costs.backward_s + costs.optimizer_s)
    assert costs.total_s == pytest.approx(costs.compute_s + costs.resharding_s)
    assert ShardingPlan.model_validate_json(plan.canonical_json()) == plan
    assert plan.bound_s <= costs.total_s
    assert plan.gap <= 0.001
    made = {row.name: row.outputs for row in plan.operators}
    for row in plan.operators:
        for edge in row.inputs:
            if edge.producer in made and len(made[edge.producer]) == 1:
                assert made[edge.producer][0] == edge.held
    assert sum(plan.provenance.values()) == len(plan.operators)
    assert proved.question.graph.graph_hash == plan.traced.graph_hash


def test_no_option_of_an_operator_is_better_than_the_chosen(proved: ProvedStep) -> None:
    explained = explain_operator(proved, "silu")
    assert [option.chosen for option in explained.options].count(True) == 1
    assert min(option.slower_by_s for option in explained.options) == 0
    with pytest.raises(NotFound, match="no operator is called 'sillu'") as caught:
        explain_operator(proved, "sillu")
    assert "silu" in str(caught.value.hint)


def test_the_best_mesh_is_at_least_as_good_as_each(proved: ProvedStep) -> None:
    from planner.shard.mesh_shapes import factorisations

    meshes = [shape for shape in factorisations(8) if len(shape.sizes) < 3]
    best, outcomes = best_mesh(proved.question, meshes, ENGINE, 60.0)
    assert len(outcomes) == 3
    assert all(each.proved and best.bill.total_ps <= each.proved.bill.total_ps for each in outcomes)


def test_plans_of_different_steps_are_not_compared(plan: ShardingPlan) -> None:
    other = plan.model_copy(update={"traced": plan.traced.model_copy(update={"graph_hash": "0"})})
    with pytest.raises(Conflict):
        compare_plans(plan, other)


def test_a_scheme_that_does_not_fit_says_so() -> None:
    sizes = {**SMALL_BLOCK, "heads": 6, "kv_heads": 3, "hidden_size": 768}
    with pytest.raises((DocumentInvalid, NoFeasiblePlan)):
        prove_baseline("megatron", question_of(source_of("llama_block:LlamaBlock", **sizes), "7"), ENGINE)


FAMILIES: dict[str, tuple[dict[str, int], SplitWeights | None]] = {
    "resnet:ResNet": ({"width": 128, "batch": 64, "image": 64}, None),
    # Keys and values are one matrix there, which no split by heads cuts evenly: it stays whole.
    "encoder_decoder:EncoderDecoder": (
        {"hidden_size": 2048, "layers": 1, "batch": 8, "length": 1024},
        SplitWeights(r"(query|mlp\.0)\.(weight|bias)$", r"(out|mlp\.2)\.weight$"),
    ),
    "diffusion_transformer:DiffusionTransformer": ({"hidden_size": 1024, "blocks": 1, "size": 64}, COMMON_NAMES),
    "mixture_of_experts:MixtureOfExperts": (
        {"hidden_size": 2048, "ffn_size": 4096, "length": 2048},
        SplitWeights(r"^(up|down)$", r"^none$"),
    ),
}
"""Sizes at which sharding pays, and what a person splits over the inner axis (experts of the mixture)."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_proved_and_no_hand_written_plan_is_better(name: str) -> None:
    arguments, split = FAMILIES[name]
    question = question_of(source_of(name, **arguments), "2x2")
    found = prove(question, ENGINE)
    assert found.bill.total_ps == found.bound_ps
    assert all(node.has_rule for node in question.graph.nodes)
    whole = tuple(0 for _ in found.choice)
    alone = bill(question.graph, placed_step(question.graph, found.tables, whole), found.builder)
    assert found.bill.total_ps < alone.total_ps, "sharding pays at this size"

    by_fsdp = prove_baseline("fsdp", question, ENGINE)
    assert found.bill.total_ps <= by_fsdp.bill.total_ps < alone.total_ps
    if split is None:
        with pytest.raises(DocumentInvalid, match="no weight is called like one"):
            prove_baseline("megatron", question, ENGINE)
        return
    by_megatron = prove_baseline("megatron", question, ENGINE, split=split)
    assert found.bill.total_ps <= by_megatron.bill.total_ps < alone.total_ps
    cut = {
        question.graph.names[index]
        for index in question.graph.names
        if question.graph.nodes[index].kind == "parameter" and by_megatron.placed.outputs[index][0][-1] > 0
    }
    wanted = re.compile(f"{split.column}|{split.row}")
    assert cut == {each for each in question.graph.gradients if wanted.search(each)}
    assert len(cut) >= 2
