"""What one iteration runs on one device of an instance: matmuls, attention, experts, collectives, passes over memory.

The operators are those of ``planner.model.operators``, cut by the layout and joined as serving engines join them:

* projections that read the same tensor and are split alike run as one matmul (the two down projections of latent
  attention);
* a residual sum runs inside the norm behind it, the router's choice inside its matmul's epilogue;
* dispatch, activation and combine of routed experts are inside the kernel that ``KernelTimes.experts_s`` measures;
* latent attention runs absorbed on decoded tokens: its up projection of keys and values runs on prompt tokens only;
* the head runs on tokens that are sampled.

Recurrences (Mamba-2, gated delta rule) have no measured kernel in the protocol: a decoded token reads and writes the
state in fp32, a prompt token reads and writes its widths; both as a pass over memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from planner.model.mixers.softmax import AttentionSpec
from planner.model.operator import Operator
from planner.model.operators import layer_operators
from planner.model.spec import LayerSpec, ModelSpec
from planner.serving.layout import Formats, InstanceLayout
from planner.serving.words import WeightFormat
from profiles.serving_kernels.kernel_times import AttentionHeads, CollectiveName, Experts

Rows = Literal["tokens", "prompt_tokens", "sampled"]
"""What the rows of an operator are: all tokens of the iteration, those of prompts, or those that are sampled."""
ACTIVATION_BYTES = 2.0
_PASSES = frozenset({"norm", "activation", "rope", "gate", "convolution"})
_STATE_BYTES = 4.0


@dataclass(frozen=True, slots=True)
class Matmul:
    """A matmul of a device."""

    columns: int
    inner: int
    number_format: WeightFormat
    rows: Rows = "tokens"


@dataclass(frozen=True, slots=True)
class LatentHeads:
    """Heads of latent attention of a device."""

    num_heads: int


@dataclass(frozen=True, slots=True)
class RoutedExperts:
    """The routed experts of a layer."""

    experts: Experts
    number_format: WeightFormat


@dataclass(frozen=True, slots=True)
class Pass:
    """A point-wise kernel."""

    bytes_a_row: float
    rows: Rows = "tokens"


@dataclass(frozen=True, slots=True)
class State:
    """A recurrence's state of a sequence: read and written at each decoded token."""

    bytes_a_sequence: float
    bytes_a_prompt_token: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective over ``num_devices``; its tensor grows with the rows of one attention rank, or of all."""

    operation: CollectiveName
    bytes_a_row: float
    num_devices: int
    of_all_ranks: bool = False
    rows: Rows = "tokens"


@dataclass(frozen=True, slots=True)
class ExpertExchange:
    """Routed tokens to their experts and back, in a kernel of its own (DeepEP and the like)."""

    experts: Experts


Work = Matmul | AttentionHeads | LatentHeads | RoutedExperts | Pass | State | Exchange | ExpertExchange


@dataclass(frozen=True, slots=True)
class IterationOperators:
    """Everything that a token passes through on one device, all pipeline stages one after the other."""

    times: tuple[tuple[Work, int], ...]
    """Each kind of work and how often an iteration runs it."""
    layout: InstanceLayout
    num_layers: int


def iteration_operators(
    model: ModelSpec, layout: InstanceLayout, formats: Formats, *, expert_exchange: str | None = None
) -> IterationOperators:
    """List the work of one iteration."""
    counted: Counter[Work] = Counter()
    layers = Counter(model.layer_kind_sequence())
    for kind, count in layers.items():
        for work in _layer(model, kind, layout, formats, expert_exchange):
            counted[work] += count
    for work in _ends(model, layout):
        counted[work] += 1
    if layout.pp > 1:
        width = model.stream_size * ACTIVATION_BYTES
        counted[Exchange("send_recv", width, 2)] += layout.pp - 1
    return IterationOperators(tuple(counted.items()), layout, model.num_layers)


def part(number: int, ways: int) -> int:
    """The largest part of ``number`` things over ``ways`` devices."""
    return -(-number // ways)


def attention_heads(attention: AttentionSpec, tp: int) -> AttentionHeads:
    """Heads of one of ``tp`` devices; key and value heads are repeated where there are fewer than devices."""
    return AttentionHeads(
        num_heads=part(attention.num_heads, tp),
        num_kv_heads=part(attention.num_kv_heads, tp),
        head_dim=attention.head_dim,
        window=attention.sliding_window,
    )


def _layer(
    model: ModelSpec, kind: int, layout: InstanceLayout, formats: Formats, expert_exchange: str | None
) -> list[Work]:
    layer = model.layer_kinds[kind]
    works: list[Work] = []
    replicated: Counter[int] = Counter()
    for operator in layer_operators(model, kind):
        if operator.op_class == "matmul" and operator.shard == "replicated" and operator.module == "attention":
            replicated[operator.in_features] += operator.out_features  # joined: they read the same tensor
        else:
            works += _operator(operator, layer, layout, formats)
    works += [Matmul(columns, inner, formats.weights) for inner, columns in replicated.items()]
    return works + _collectives(model, layer, layout, expert_exchange)


def _operator(operator: Operator, layer: LayerSpec, layout: InstanceLayout, formats: Formats) -> list[Work]:
    """The work of one operator; none where another's kernel does it."""
    tp = layout.tp
    match operator.op_class:
        case "matmul":
            rows: Rows = "prompt_tokens" if operator.name == "kv_up" else "tokens"
            columns = part(operator.out_features, tp) if operator.shard == "column" else operator.out_features
            inner = part(operator.in_features, tp) if operator.shard == "row" else operator.in_features
            return [Matmul(columns, inner, formats.weights, rows)]
        case "router" if operator.in_features:
            return [Matmul(operator.out_features, operator.in_features, "bf16")]
        case "attention" if isinstance(layer.attention, AttentionSpec):
            heads = attention_heads(layer.attention, tp)
            latent = layer.attention.kind == "mla"
            return [LatentHeads(heads.num_heads) if latent else heads]
        case "chunk_scan" | "selective_scan":
            heads_here = part(operator.num_heads, tp)
            state = 2 * heads_here * operator.qk_dim * operator.v_dim * _STATE_BYTES
            widths = (operator.read_width + operator.write_width) * ACTIVATION_BYTES / tp
            return [State(state, 2 * widths)]
        case "grouped_matmul" if operator.shard == "expert_column" and layer.moe is not None:
            return [RoutedExperts(routed_experts(operator, layer, layout), formats.of_experts)]
        case op_class if op_class in _PASSES and operator.shard != "expert_features":
            cut = tp if operator.shard in {"heads", "features"} else 1
            bytes_a_row = (operator.read_width + operator.write_width) * ACTIVATION_BYTES / cut
            sums = operator.op_class == "norm" and operator.module == "norm"
            return [Pass(bytes_a_row * (2 if sums else 1))]  # a norm reads and writes the residual stream too
        case _:
            return []


def routed_experts(operator: Operator, layer: LayerSpec, layout: InstanceLayout) -> Experts:
    """The routed experts of a layer, as the kernel tables name them; ``operator`` is their input projection."""
    moe = layer.moe
    assert moe is not None  # grouped matmuls are a mixture's
    return Experts(
        hidden_size=operator.in_features,
        ffn_hidden_size=moe.expert_intermediate_size,
        experts_per_token=moe.top_k,
        num_experts=moe.num_experts,
        etp=layout.etp,
        ep=layout.ep,
    )


def _collectives(model: ModelSpec, layer: LayerSpec, layout: InstanceLayout, expert_exchange: str | None) -> list[Work]:
    """A sum over tp after attention and after the MLP.

    Experts of several attention ranks: their tokens are gathered before and reduce-scattered behind, or sent by an
    all-to-all kernel of its own.
    """
    width = model.hidden_size * ACTIVATION_BYTES
    works: list[Work] = []
    mixes = layer.attention.kind != "none"
    feeds = layer.mlp is not None or layer.moe is not None
    if layout.tp > 1:
        works += [Exchange("all_reduce", width, layout.tp)] * mixes
    if layout.cp > 1 and mixes:
        keys = _key_value_width(layer, layout) * ACTIVATION_BYTES
        works.append(Exchange("all_gather", keys * layout.cp, layout.cp, rows="prompt_tokens"))
    if not feeds:
        return works
    if layer.moe is None or layout.attention_dp * layout.cp == 1:
        return works + [Exchange("all_reduce", width, layout.tp)] * (layout.tp > 1)
    if expert_exchange and "deepep" in expert_exchange:
        operator = next(o for o in layer_operators_of_experts(model, layer))
        return [*works, ExpertExchange(routed_experts(operator, layer, layout))]
    stage = layout.stage_devices
    works.append(Exchange("all_gather", width, stage, of_all_ranks=True))
    works.append(Exchange("reduce_scatter", width, stage, of_all_ranks=True))
    return works


def layer_operators_of_experts(model: ModelSpec, layer: LayerSpec) -> list[Operator]:
    """The input projections of the routed experts of a layer."""
    kind = model.layer_kinds.index(layer)
    return [o for o in layer_operators(model, kind) if o.op_class == "grouped_matmul" and o.shard == "expert_column"]


def _key_value_width(layer: LayerSpec, layout: InstanceLayout) -> float:
    attention = layer.attention
    if not isinstance(attention, AttentionSpec):
        return 0.0
    if attention.kind == "mla":
        return (attention.kv_lora_rank or 0) + (attention.qk_rope_head_dim or 0)
    return part(attention.num_kv_heads, layout.tp) * (attention.head_dim + attention.v_head_dim)


def _ends(model: ModelSpec, layout: InstanceLayout) -> list[Work]:
    """Embedding, final norm, head on sampled tokens, the gather of its logits."""
    width = model.hidden_size * ACTIVATION_BYTES
    works: list[Work] = [Pass(2 * width), Pass(2 * width, "sampled")]
    works.append(Matmul(part(model.vocab_size, layout.tp), model.hidden_size, "bf16", "sampled"))
    if layout.tp > 1:
        works.append(Exchange("all_reduce", width, layout.tp))
        logits = model.vocab_size * ACTIVATION_BYTES
        works.append(Exchange("all_gather", logits, layout.tp, rows="sampled"))
    return works
