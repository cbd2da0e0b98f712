from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from planner.errors import DocumentInvalid, NotFound
from planner.shard.torch_graph.joint_step import trace_joint_step
from planner.shard.torch_graph.module_source import load_module
from planner.shard.torch_graph.read_graph import operator_graph, traced_step
from tests.shard_questions import SMALL_BLOCK, source_of

HERE = "tests.unit.planner.shard.test_trace"


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:  # this line reads a value
            return torch.relu(self.linear(x))
        return torch.neg(self.linear(x))

    def example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(4, 8),)


class Accumulates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.total = nn.Buffer(torch.zeros(8))

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        y += 1
        self.total.add_(y.detach().sum(0))
        return torch.relu_(y)

    def example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(4, 8),)


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        return torch.mul(self.linear(x), scale)


def test_the_traced_graph_computes_the_gradients_that_autograd_computes() -> None:
    sizes = {"hidden_size": 32, "ffn_size": 48, "heads": 4, "kv_heads": 2, "sequence": 16, "batch": 2}
    step = traced_step(load_module("tests.examples.llama_block:LlamaBlock", sizes, dtype="float32"))
    from tests.examples.llama_block import LlamaBlock

    torch.manual_seed(0)
    module = LlamaBlock(**sizes)
    x = torch.randn(2, 16, 32, requires_grad=True)
    module(x).sum().backward()
    parameters = dict(module.named_parameters())
    with torch.no_grad():
        flat = [*(parameters[name].detach() for name in step.parameters), x.detach()]
        found = torch.fx.Interpreter(step.graph).run(*flat, enable_io_processing=False)
    wanted = {f"parameter:{name}": each.grad for name, each in parameters.items()} | {"input:x": x.grad}
    for name, value in zip(step.results[1:], found[1:], strict=True):
        expected = wanted[name]
        assert expected is not None
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5)


def test_tracing_twice_gives_the_same_graph() -> None:
    source = source_of("llama_block:LlamaBlock", **SMALL_BLOCK)
    graphs = [operator_graph(traced_step(source), (2,)) for _ in range(2)]
    assert graphs[0].graph_hash == graphs[1].graph_hash


def test_operators_know_their_module_in_both_passes() -> None:
    graph = operator_graph(traced_step(source_of("llama_block:LlamaBlock", **SMALL_BLOCK)), (2,))
    products = [node for node in graph.nodes if node.work.kind == "contraction"]
    assert {(node.module_path, node.phase) for node in products} >= {
        (path, phase)
        for path in ("attention.wq", "attention.wo", "feed_forward.w1", "feed_forward.w2")
        for phase in ("forward", "backward")
    }
    assert len(products) == 7 * 3


def test_products_keep_batch_and_sequence_apart() -> None:
    graph = operator_graph(traced_step(source_of("llama_block:LlamaBlock", **SMALL_BLOCK)), (2,))
    products = [node for node in graph.nodes if node.work.kind == "contraction" and node.phase == "forward"]
    assert all(len(shape.sizes) == 3 for node in products if (shape := node.output_shapes[0]))


def test_changes_in_place_become_results() -> None:
    step = traced_step(load_module(f"{HERE}:Accumulates"))
    assert step.results == ("loss", "parameter:linear.weight", "parameter:linear.bias", "buffer:total")
    mutating = [node for node in step.graph.graph.nodes if getattr(node.target, "_schema", None)]
    assert not any(node.target._schema.is_mutable for node in mutating)


def test_control_flow_on_values_names_the_line() -> None:
    with pytest.raises(DocumentInvalid, match="reads the value of a tensor") as caught:
        trace_joint_step(load_module(f"{HERE}:Branches"))
    assert "test_trace.py" in str(caught.value.where)
    assert "if x.sum() > 0" in str(caught.value.where)
    assert "torch.where" in str(caught.value.hint)


def test_inputs_that_do_not_fit_are_named_as_such() -> None:
    source = load_module(f"{HERE}:TwoInputs", inputs=["x=float32[4,9]", "scale=float32[8]"])
    with pytest.raises(DocumentInvalid, match="shapes do not fit"):
        trace_joint_step(source)


@pytest.mark.parametrize(
    ("reference", "kind", "what"),
    [
        ("no.such.package:Thing", NotFound, "no module 'no'"),
        (f"{HERE}:Missing", NotFound, "has no 'Missing'"),
        (f"{HERE}:HERE", DocumentInvalid, "no nn.Module"),
        ("just_a_name", DocumentInvalid, "names no attribute"),
        (f"{HERE}:TwoInputs", DocumentInvalid, "nothing says what the module is called with"),
    ],
)
def test_bad_references(reference: str, kind: type[Exception], what: str) -> None:
    with pytest.raises(kind, match=what):
        load_module(reference)


@pytest.mark.parametrize("text", ["x", "x=float32", "x=float32[a]", "x=floaty[2]"])
def test_bad_inputs(text: str) -> None:
    with pytest.raises(DocumentInvalid):
        load_module(f"{HERE}:TwoInputs", inputs=[text])
