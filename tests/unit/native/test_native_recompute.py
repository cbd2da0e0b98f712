from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from planner.backends.native.trainer.branch_input import kept_input
from planner.backends.native.trainer.initialize import initialize
from planner.backends.native.trainer.model import DecoderChunk, on_meta, whole_model
from planner.backends.native.trainer.recompute import KEEP_ALL, RecomputeChoice
from tests.native_models import tiny_llama

TOKENS = 32
HIDDEN, WIDTH, LAYERS = 64, 96, 4


class CountMatmuls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts two-dimensional matrix products while it is active."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
        return func(*args, **(kwargs or {}))


def one_step(choice: RecomputeChoice) -> tuple[int, int, dict[str, Tensor]]:
    """Bytes kept for the backward pass (parameters left out), matrix products, gradients."""
    model = tiny_llama(num_layers=LAYERS)
    chunk: DecoderChunk = on_meta(model, whole_model(model))
    chunk.to_empty(device="cpu")
    initialize(chunk, torch.device("cpu"), 0)
    for block in chunk.blocks().values():
        block.set_recompute(choice)
    parameters = {parameter.untyped_storage().data_ptr() for parameter in chunk.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    tokens = torch.arange(TOKENS)[None, :]
    with CountMatmuls() as counted:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss = chunk(tokens).square().mean()
        loss.backward()
    gradients = {name: p.grad for name, p in chunk.named_parameters() if p.grad is not None}
    return sum(kept.values()), counted.count, gradients


@pytest.mark.parametrize(
    "choice",
    [
        RecomputeChoice(whole_block=True),
        RecomputeChoice(modules=frozenset({"attention_core"})),
        RecomputeChoice(modules=frozenset({"activation"})),
        RecomputeChoice(modules=frozenset({"mlp"})),
        RecomputeChoice(modules=frozenset({"norm"})),
        RecomputeChoice(modules=frozenset({"norm", "mlp"})),
        RecomputeChoice(modules=frozenset({"norm", "activation"})),
        RecomputeChoice(modules=frozenset({"attention_core", "activation", "mlp"})),
    ],
)
def test_recompute_changes_no_gradient(choice: RecomputeChoice) -> None:
    _, _, plain = one_step(KEEP_ALL)
    _, _, again = one_step(choice)
    assert plain.keys() == again.keys()
    for name, gradient in plain.items():
        torch.testing.assert_close(again[name], gradient, rtol=1e-6, atol=1e-9)


def test_activation_frees_the_product_without_a_second_matmul() -> None:
    kept, matmuls, _ = one_step(KEEP_ALL)
    kept_less, matmuls_again, _ = one_step(RecomputeChoice(modules=frozenset({"activation"})))
    # silu(gate) and its product with up, [tokens, width] fp32 each, on every layer; gate and up stay.
    assert kept - kept_less == LAYERS * TOKENS * WIDTH * 4 * 2
    assert matmuls_again == matmuls


def test_norm_recompute_frees_both_norm_outputs() -> None:
    kept, matmuls, _ = one_step(KEEP_ALL)
    kept_less, matmuls_again, _ = one_step(RecomputeChoice(modules=frozenset({"norm"})))
    assert kept - kept_less == LAYERS * TOKENS * HIDDEN * 4 * 2
    assert matmuls_again == matmuls


class TwiceEntry:
    """Stands for a gather over two ranks: the sequence twice as long."""

    gathers = True

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, hidden: Tensor) -> Tensor:
        self.calls += 1
        return torch.cat((hidden, hidden), dim=1)


def test_a_gathered_input_is_gathered_again_and_not_kept() -> None:
    layer, other = torch.nn.Linear(8, 4), torch.nn.Linear(8, 4)
    hidden = torch.randn(1, 3, 8, requires_grad=True)
    kept: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    def run(*, checkpointed: bool) -> tuple[int, Tensor, Tensor]:
        entry = TwiceEntry()
        kept.clear()
        with (
            torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
            kept_input(entry, hidden, None, checkpointed=checkpointed) as whole,
        ):
            loss = (layer(whole) * other(whole)).sum()
        gradients = torch.autograd.grad(loss, (hidden, layer.weight))
        return entry.calls, gradients[0], gradients[1]

    calls, gradient, weight_gradient = run(checkpointed=False)
    assert calls == 2  # forward, and once for both matrices in the backward pass
    assert 2 * 3 * 8 not in kept
    plain_calls, plain_gradient, plain_weight_gradient = run(checkpointed=True)
    assert plain_calls == 1
    assert 2 * 3 * 8 in kept
    torch.testing.assert_close(gradient, plain_gradient)
    torch.testing.assert_close(weight_gradient, plain_weight_gradient)


def test_whole_blocks_run_their_matmuls_again_and_keep_no_insides() -> None:
    kept, matmuls, _ = one_step(KEEP_ALL)
    kept_less, matmuls_again, _ = one_step(RecomputeChoice(whole_block=True))
    # query, key, value, output, gate and up run twice; early stop leaves out the last one, down.
    assert matmuls_again == matmuls + LAYERS * 6
    assert kept_less < kept / 4
