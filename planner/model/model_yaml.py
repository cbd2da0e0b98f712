"""Our own small model description, in YAML or JSON.

Ten lines of YAML (or JSON) describe a dense or mixture-of-experts decoder without a Hugging Face config:

    name: my-moe                 # default: the file's name
    num_layers: 32
    hidden_size: 4096
    num_heads: 32
    num_kv_heads: 8              # default: num_heads
    intermediate_size: 14336
    vocab_size: 128256
    max_sequence_length: 8192
    mlp: swiglu                  # swiglu, geglu, gelu, relu, squared_relu
    moe: {num_experts: 8, top_k: 2}

``ModelDescription`` lists every key with its default.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from planner.model.layer_runs import runs_of
from planner.model.spec import (
    AttentionSpec,
    LayerSpec,
    MlpSpec,
    ModelSpec,
    MoeSpec,
    MtpSpec,
    NormKind,
    PositionKind,
)
from profiles.document import Document
from profiles.validation import Finding, read_document, require

MlpKind = Literal["swiglu", "geglu", "gelu", "relu", "squared_relu"]

_ACTIVATION: dict[MlpKind, str] = {
    "swiglu": "silu",
    "geglu": "gelu_pytorch_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "squared_relu": "relu2",
}


class MoeDescription(Document):
    """Mixture of experts: which layers route, and how wide the experts are."""

    model_config = ConfigDict(strict=True)

    num_experts: int = Field(gt=0, le=100_000)
    top_k: int = Field(gt=0)
    intermediate_size: int | None = Field(default=None, gt=0, description="of one expert; default: the model's")
    shared_intermediate_size: int = Field(default=0, ge=0, description="total width of the shared experts; 0 = none")
    shared_gate: bool = False
    score_function: Literal["softmax", "sigmoid"] = "softmax"
    num_groups: int = Field(default=1, gt=0)
    top_k_groups: int = Field(default=1, gt=0)
    first_dense_layers: int = Field(default=0, ge=0, description="leading layers with a dense MLP")
    every: int = Field(default=1, gt=0, description="of the other layers, every n-th routes")


class MlaDescription(Document):
    """Multi-head latent attention (arXiv 2405.04434, section 2.1)."""

    model_config = ConfigDict(strict=True)

    q_lora_rank: int | None = Field(default=None, gt=0)
    kv_lora_rank: int = Field(gt=0)
    qk_nope_head_dim: int = Field(gt=0)
    qk_rope_head_dim: int = Field(gt=0)
    v_head_dim: int = Field(gt=0)


class ModelDescription(Document):
    """Every key of the model YAML."""

    model_config = ConfigDict(strict=True)

    name: str | None = Field(default=None, min_length=1)
    num_layers: int = Field(gt=0, le=10_000)
    hidden_size: int = Field(gt=0, le=10_000_000)
    num_heads: int = Field(gt=0, le=100_000)
    num_kv_heads: int | None = Field(default=None, gt=0)
    head_dim: int | None = Field(default=None, gt=0, description="default: hidden_size / num_heads")
    intermediate_size: int = Field(gt=0, le=10_000_000)
    vocab_size: int = Field(gt=0, le=10_000_000)
    max_sequence_length: int = Field(default=8192, gt=0)
    mlp: MlpKind = "swiglu"
    norm: NormKind = "rms"
    norm_epsilon: float = Field(default=1e-5, gt=0)
    bias: bool = Field(default=False, description="biases on every matmul of the layers")
    qkv_bias: bool | None = Field(default=None, description="default: as bias")
    qk_norm: Literal["none", "per_head", "full_width"] = "none"
    position: PositionKind = "rope"
    rotary_base: float = Field(default=10000.0, gt=0)
    rotary_fraction: float = Field(default=1.0, gt=0, le=1)
    parallel_residual: bool = False
    tie_embeddings: bool = False
    sliding_window: int | None = Field(default=None, gt=0)
    full_attention_every: int | None = Field(
        default=None, gt=0, description="with sliding_window: every n-th layer sees everything; default: none does"
    )
    moe: MoeDescription | None = None
    mla: MlaDescription | None = None
    mtp_layers: int = Field(default=0, ge=0, le=64)


def model_from_description(data: Any, name: str, where: str) -> ModelSpec:
    """Turn parsed YAML or JSON into a ``ModelSpec``; ``name`` stands in where the document has none.

    Raises ``FindingsInvalid`` with all findings: unknown keys (did-you-mean), impossible numbers.
    """
    description = read_document(ModelDescription, data, where)
    require(_contradictions(description), where)
    return _spec(description, name)


def _contradictions(model: ModelDescription) -> list[Finding]:
    findings: list[Finding] = []

    def refuse(pointer: str, what: str) -> None:
        findings.append(Finding(pointer, what, f"correct {pointer.rsplit('/', 1)[-1]}"))

    if model.head_dim is None and model.mla is None and model.hidden_size % model.num_heads:
        refuse("/num_heads", f"num_heads must divide hidden_size = {model.hidden_size}, or give head_dim")
    if model.num_heads % (model.num_kv_heads or model.num_heads):
        refuse("/num_kv_heads", f"num_kv_heads must divide num_heads = {model.num_heads}, is {model.num_kv_heads}")
    if model.mla is not None and model.num_kv_heads not in (None, model.num_heads):
        refuse("/num_kv_heads", "latent attention has as many key as query heads: leave num_kv_heads out")
    if model.full_attention_every is not None and model.sliding_window is None:
        refuse("/full_attention_every", "full_attention_every needs sliding_window")
    moe = model.moe
    if moe is not None and moe.top_k > moe.num_experts:
        refuse("/moe/top_k", f"top_k must not exceed num_experts = {moe.num_experts}, is {moe.top_k}")
    if moe is not None and moe.num_experts % moe.num_groups:
        refuse("/moe/num_groups", f"num_groups must divide num_experts = {moe.num_experts}, is {moe.num_groups}")
    if moe is not None and moe.top_k_groups > moe.num_groups:
        refuse("/moe/top_k_groups", f"top_k_groups must not exceed num_groups = {moe.num_groups}")
    return findings


def _attention(model: ModelDescription, *, window: int | None) -> AttentionSpec:
    qkv_bias = model.bias if model.qkv_bias is None else model.qkv_bias
    if model.mla is not None:
        mla = model.mla
        return AttentionSpec(
            kind="mla",
            num_heads=model.num_heads,
            num_kv_heads=model.num_heads,
            head_dim=mla.qk_nope_head_dim + mla.qk_rope_head_dim,
            v_head_dim=mla.v_head_dim,
            qkv_bias=qkv_bias,
            output_bias=model.bias,
            sliding_window=window,
            q_lora_rank=mla.q_lora_rank,
            kv_lora_rank=mla.kv_lora_rank,
            qk_rope_head_dim=mla.qk_rope_head_dim,
        )
    head_dim = model.head_dim or model.hidden_size // model.num_heads
    rotated = max(int(head_dim * model.rotary_fraction), 1)
    return AttentionSpec(
        num_heads=model.num_heads,
        num_kv_heads=model.num_kv_heads or model.num_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qkv_bias=qkv_bias,
        output_bias=model.bias,
        qk_norm=model.qk_norm,
        sliding_window=window,
        qk_rope_head_dim=rotated if rotated < head_dim else None,
    )


def _layers(model: ModelDescription) -> list[LayerSpec]:
    gated = model.mlp in ("swiglu", "geglu")
    mlp = MlpSpec(intermediate_size=model.intermediate_size, gated=gated, bias=model.bias)
    experts: MoeSpec | None = None
    if model.moe is not None:
        experts = MoeSpec(
            num_experts=model.moe.num_experts,
            top_k=model.moe.top_k,
            expert_intermediate_size=model.moe.intermediate_size or model.intermediate_size,
            gated=gated,
            expert_bias=model.bias,
            shared_intermediate_size=model.moe.shared_intermediate_size,
            shared_bias=model.bias,
            shared_gate=model.moe.shared_gate,
            score_function=model.moe.score_function,
            num_groups=model.moe.num_groups,
            top_k_groups=model.moe.top_k_groups,
        )
    layers: list[LayerSpec] = []
    made: dict[tuple[bool, bool], LayerSpec] = {}
    for layer in range(model.num_layers):
        full = model.full_attention_every is not None and (layer + 1) % model.full_attention_every == 0
        routes = _routes(model.moe, layer)
        if (full, routes) not in made:
            made[full, routes] = LayerSpec(
                attention=_attention(model, window=None if full else model.sliding_window),
                mlp=None if routes else mlp,
                moe=experts if routes else None,
                norm=model.norm,
                parallel_residual=model.parallel_residual,
            )
        layers.append(made[full, routes])
    return layers


def _routes(moe: MoeDescription | None, layer: int) -> bool:
    if moe is None or layer < moe.first_dense_layers:
        return False
    return (layer - moe.first_dense_layers) % moe.every == moe.every - 1


def _spec(model: ModelDescription, name: str) -> ModelSpec:
    layers = _layers(model)
    kinds, runs = runs_of(layers)
    return ModelSpec(
        name=model.name or name,
        family="custom",
        hidden_size=model.hidden_size,
        vocab_size=model.vocab_size,
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=model.tie_embeddings,
        learned_positions=model.max_sequence_length if model.position == "learned" else 0,
        max_sequence_length=model.max_sequence_length,
        mtp=MtpSpec(num_layers=model.mtp_layers, kind=kinds.index(layers[-1]), count_in_parameters=True)
        if model.mtp_layers
        else None,
        activation_function=_ACTIVATION[model.mlp],
        position=model.position,
        rotary_base=model.rotary_base,
        norm_epsilon=model.norm_epsilon,
    )
