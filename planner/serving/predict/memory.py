"""Memory of a device of an instance: weights, what the engine keeps back, and how many tokens the rest holds.

Keys and values of one token: of each layer ``2 x kv heads of the device x head_dim`` (a kv head is repeated where tp is
larger than their number; decode context parallelism shares a token among ``dcp`` devices instead), or the latent and
its rotated key, which every device of tp keeps whole (arXiv 2405.04434, section 2.1.1).  Layers with a window keep at
most the window's tokens of a request; recurrences keep a state of a request, whatever its length.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from planner.model.mixers.delta_rule import DeltaRuleSpec
from planner.model.mixers.mamba import Mamba2Spec
from planner.model.mixers.softmax import AttentionSpec
from planner.model.operator import Operator
from planner.model.operators import embedding_operators, head_operators, layer_operators
from planner.model.spec import ModelSpec
from planner.serving.layout import Formats, InstanceGroup, InstanceLayout
from planner.serving.predict.behaviour import Behaviour
from planner.serving.predict.iteration_operators import attention_heads, part
from planner.serving.words import CACHE_BYTES, WEIGHT_BYTES

__all__ = ["CacheNeed", "DeviceMemory", "cache_need", "device_memory", "weight_bytes"]

_PLAIN = 2.0
"""Bytes of a weight that engines do not quantise: embedding, head, norms, router."""
_STATE_BYTES = 4.0
_QUANTISED = frozenset({"attention", "mlp", "shared_expert"})


@dataclass(frozen=True, slots=True)
class CacheNeed:
    """Bytes that requests keep on a device of the stage with most layers."""

    bytes_a_token: float
    """Of layers that keep all tokens."""
    windows: tuple[tuple[int, float], ...]
    """Layers that keep a window: (tokens, bytes a token)."""
    bytes_a_request: float
    """States of recurrences."""

    def of_request(self, tokens: float) -> float:
        """Bytes of a request that is ``tokens`` long now."""
        windows = sum(min(window, tokens) * size for window, size in self.windows)
        return self.bytes_a_token * tokens + windows + self.bytes_a_request


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """One device of an instance group."""

    weight_bytes: float
    reserved_bytes: float
    cache_bytes: float
    """Room for keys and values; below 0 where weights and reserves alone are too much."""
    need: CacheNeed
    replicas: int
    """Attention data-parallel ranks of the instance: each holds requests of its own."""

    def requests(self, tokens: float) -> float:
        """Requests of ``tokens`` each that an instance holds at once; 0 = not even one."""
        each = self.need.of_request(tokens)
        return self.replicas * max(self.cache_bytes, 0.0) / each if each > 0 else float("inf")

    def tokens(self, length: float) -> int:
        """Tokens of requests of this length that an instance holds."""
        held = self.requests(length)
        return int(held * length) if held != float("inf") else 1 << 40


def weight_bytes(model: ModelSpec, layout: InstanceLayout, formats: Formats, *, redundant_experts: int = 0) -> float:
    """Bytes of weights of a device of the fullest stage, with copies of experts."""
    layers = _stage_layers(model, layout)
    copies = 1 + redundant_experts / max(model.num_experts, 1)
    total = 0.0
    for kind, count in layers.items():
        each = sum(
            _operator_bytes(operator, layout, formats) * (copies if operator.shard.startswith("expert_") else 1.0)
            for operator in layer_operators(model, kind)
        )
        total += count * each
    ends = sum(_operator_bytes(o, layout, formats) for o in (*embedding_operators(model), *head_operators(model)))
    if layout.pp > 1:  # embedding and head are on different stages
        ends /= 2
    return total + ends


def cache_need(model: ModelSpec, layout: InstanceLayout, formats: Formats) -> CacheNeed:
    """Bytes that requests keep on a device."""
    element = CACHE_BYTES[formats.kv_cache]
    whole, state = 0.0, 0.0
    windows: Counter[int] = Counter()
    for kind, count in _stage_layers(model, layout).items():
        mixer = model.layer_kinds[kind].attention
        if isinstance(mixer, AttentionSpec):
            size = count * _token_width(mixer, layout) * element
            if mixer.sliding_window is None:
                whole += size
            else:
                windows[mixer.sliding_window] += size  # type: ignore[assignment]
        elif isinstance(mixer, DeltaRuleSpec | Mamba2Spec):
            state += count * _state_bytes(mixer, layout)
    return CacheNeed(whole, tuple((tokens, float(size)) for tokens, size in windows.items()), state)


def device_memory(
    model: ModelSpec, device_bytes: float, group: InstanceGroup, formats: Formats, behaviour: Behaviour
) -> DeviceMemory:
    """What the engine leaves to keys and values on a device of the group; the rule is ``Behaviour``'s."""
    layout, settings = group.layout, group.settings
    weights = weight_bytes(model, layout, formats, redundant_experts=settings.redundant_experts)
    limits = behaviour.limits(device_bytes)
    ranks = layout.attention_dp
    tokens = limits.max_num_batched_tokens
    if settings.max_num_batched_tokens is not None:
        tokens = part(settings.max_num_batched_tokens, ranks)
    graphs = min(limits.graph_sequences, part(settings.max_num_sequences or limits.graph_sequences * ranks, ranks))
    reserves = behaviour.reserves(tokens, layout.num_devices, graphs, model.hidden_size)
    fraction = settings.memory_fraction or behaviour.memory_fraction
    if settings.memory_fraction is not None and behaviour.fraction_without_reserves:
        reserves = 0.0
    if behaviour.fraction_of_free:
        cache = fraction * (device_bytes - weights - reserves)
    else:
        cache = fraction * device_bytes - weights - reserves
    return DeviceMemory(
        weight_bytes=weights,
        reserved_bytes=device_bytes - weights - max(cache, 0.0),
        cache_bytes=cache,
        need=cache_need(model, layout, formats),
        replicas=ranks,
    )


def _stage_layers(model: ModelSpec, layout: InstanceLayout) -> Counter[int]:
    """Layers of the fullest stage by kind: the first ones, which are as many as any stage has."""
    sequence = model.layer_kind_sequence()
    if layout.pp == 1:
        return Counter(sequence)
    size = part(len(sequence), layout.pp)
    stages = [sequence[start : start + size] for start in range(0, len(sequence), size)]
    return Counter(max(stages, key=lambda stage: sum(layer_weight(model, kind) for kind in stage)))


def layer_weight(model: ModelSpec, kind: int) -> int:
    """Learned scalars of a layer kind."""
    return sum(operator.parameters for operator in layer_operators(model, kind))


def _operator_bytes(operator: Operator, layout: InstanceLayout, formats: Formats) -> float:
    shared, split = operator.replicated_parameters, operator.parameters - operator.replicated_parameters
    if operator.shard.startswith("expert_"):
        return (shared + split / (layout.etp * layout.ep)) * WEIGHT_BYTES[formats.of_experts]
    ways = 1 if operator.shard in {"replicated", "sequence"} else layout.tp
    quantised = operator.op_class == "matmul" and operator.module in _QUANTISED
    return (shared + split / ways) * (WEIGHT_BYTES[formats.weights] if quantised else _PLAIN)


def _token_width(mixer: AttentionSpec, layout: InstanceLayout) -> float:
    if mixer.reuses_key_values:
        return 0.0
    if mixer.kind == "mla":
        return ((mixer.kv_lora_rank or 0) + (mixer.qk_rope_head_dim or 0)) / layout.dcp
    heads = attention_heads(mixer, layout.tp).num_kv_heads
    return heads * (mixer.head_dim + mixer.v_head_dim) / layout.dcp


def _state_bytes(mixer: DeltaRuleSpec | Mamba2Spec, layout: InstanceLayout) -> float:
    features = mixer.state_size if isinstance(mixer, Mamba2Spec) else mixer.key_head_dim
    return part(mixer.num_heads, layout.tp) * mixer.v_head_dim * features * _STATE_BYTES
