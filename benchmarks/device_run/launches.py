"""What the host takes to launch, and what a graph takes away.

1. The host's time for one call of a small operator (its kernel far shorter than the call), plain, under autograd and
   as one node of a replayed graph.
2. One decoder layer of transformers, forward and backward: eager beside the replay of one captured graph, for several
   numbers of tokens, dense and as a mixture whose experts are one grouped product.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch

from benchmarks.device_run.hugging_face import build_model, release, truth_facts
from benchmarks.device_run.models import MODELS, ModelSize
from benchmarks.device_run.records import Recorder
from benchmarks.device_run.steps import kernels_of

CALLS = 400
REPEATS = 9
LAYERS: tuple[tuple[str, str], ...] = (
    ("llama-8b-4layers", ""),
    ("qwen3moe-30b-4layers", "grouped_mm"),
    ("llama-1.3b", ""),
)
TOKENS = (64, 256, 1024, 4096, 8192)


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer with its input, and the gradient of its output."""

    module: Any
    hidden: torch.Tensor
    gradient: torch.Tensor
    positions: Any

    def run(self) -> None:
        """Forward and backward; gradients are written over."""
        with torch.autocast(self.hidden.device.type, dtype=torch.bfloat16, cache_enabled=False):
            found = self.module(self.hidden, position_embeddings=self.positions)
        output = found[0] if isinstance(found, tuple) else found
        output.backward(self.gradient)


def run(recorder: Recorder, device: torch.device, *, tiny: bool) -> None:
    """Both parts."""
    for name, call in small_calls(device):
        recorder.case({"id": f"launch-{name}", "kind": "launch"}, lambda call=call: launch_times(call, device))  # type: ignore[misc]
    for model, experts in (("llama-tiny", ""),) if tiny else LAYERS:
        for tokens in (64,) if tiny else TOKENS:
            size = MODELS[model]
            facts = {**truth_facts(size, 1, tokens, False), "id": f"layer-{model}-{experts or 'dense'}-t{tokens}"}
            recorder.case(facts, lambda s=size, e=experts, t=tokens: layer_times(s, e, t, device))  # type: ignore[misc]
            release(device)


def small_calls(device: torch.device) -> Iterator[tuple[str, Callable[[], object]]]:
    """Operators on so little data that only their launch takes time."""
    functional = torch.nn.functional
    x = torch.randn(64, 64, device=device, dtype=torch.bfloat16)
    tracked = x.clone().requires_grad_()
    weight = torch.randn(64, device=device, dtype=torch.bfloat16)
    heads = torch.randn(1, 2, 64, 64, device=device, dtype=torch.bfloat16)
    module = torch.nn.Linear(64, 64, device=device, dtype=torch.bfloat16)
    total = torch.zeros((), device=device)
    yield "add", lambda: x + x
    yield "add-in-place", lambda: total.add_(1.0)
    yield "mm", lambda: x @ x
    yield "silu-mul", lambda: functional.silu(x) * x
    yield "rms-norm", lambda: functional.rms_norm(x, (64,), weight)
    yield "softmax", lambda: torch.softmax(x, dim=-1)
    yield "attention", lambda: functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
    yield "linear-module", lambda: module(x)
    yield "cast", x.float
    yield "index-select", lambda: x.index_select(0, torch.arange(64, device=device))
    yield "add-forward-tape", lambda: tracked + tracked
    yield "linear-forward-backward", lambda: module(tracked).sum().backward()


def launch_times(call: Callable[[], object], device: torch.device) -> dict[str, Any]:
    """``host_s``: wall time of submitting one call; ``call_s``: device time a call back to back; graph alike."""
    for _ in range(20):
        call()
    submitted, whole = zip(*(_many(call, CALLS, device) for _ in range(REPEATS)), strict=True)
    found: dict[str, Any] = {"host_s": median(submitted), "call_s": median(whole), "num_calls": CALLS}
    replay = _captured(lambda: [call() for _ in range(CALLS)], device)
    if isinstance(replay, str):
        return {**found, "graph_error": replay}
    spent = [_many(replay, 1, device) for _ in range(REPEATS)]
    return {
        **found,
        "graph_host_s": median(each[0] for each in spent) / CALLS,
        "graph_call_s": median(each[1] for each in spent) / CALLS,
    }


def layer_times(size: ModelSize, experts: str, tokens: int, device: torch.device) -> dict[str, Any]:
    """Eager and replayed time of one layer's forward and backward pass."""
    layer = _layer(size, experts, tokens, device)
    for _ in range(4):
        layer.run()
    count = 10
    submitted, whole = zip(*(_many(layer.run, count, device) for _ in range(5)), strict=True)
    found: dict[str, Any] = {"host_s": median(submitted), "step_time_s": median(whole)}
    replay = _captured(layer.run, device)
    if isinstance(replay, str):
        found |= {"graph_error": replay}
    else:
        spent = [_many(replay, count, device) for _ in range(5)]
        found |= {"graph_host_s": median(each[0] for each in spent)}
        found |= {"graph_step_time_s": median(each[1] for each in spent)}
    return {**found, **kernels_of(layer.run, device)}


def _layer(size: ModelSize, experts: str, tokens: int, device: torch.device) -> _Layer:
    one = ModelSize(size.name, 1, size.hidden, size.ffn_hidden, size.heads, size.kv_heads, 1024, size.experts,
                    size.topk, size.head_dim)  # fmt: skip
    model = build_model(one, "amp", "sdpa", experts, device).model
    model.train()
    hidden = torch.randn(1, tokens, size.hidden, device=device, requires_grad=True)
    index = torch.arange(tokens, device=device)[None]
    positions = model.rotary_emb(hidden, index)
    return _Layer(model.layers[0], hidden, torch.randn_like(hidden), positions)


def _many(call: Callable[[], object], count: int, device: torch.device) -> tuple[float, float]:
    """(host seconds, seconds until the device is done) of one of ``count`` calls in a row."""
    _wait(device)
    begin_s = time.perf_counter()
    for _ in range(count):
        call()
    submitted_s = time.perf_counter() - begin_s
    _wait(device)
    return submitted_s / count, (time.perf_counter() - begin_s) / count


def _captured(call: Callable[[], object], device: torch.device) -> Callable[[], None] | str:
    """A replay of the call as one graph, or why there is none."""
    if device.type != "cuda":
        return "no graphs on this device"
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
    except RuntimeError as error:
        torch.cuda.synchronize()
        return " ".join(str(error).split())[:200]
    return graph.replay


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
