"""Tiny models and plans that the native trainer can run on CPU processes in a fraction of a second."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec, MoeSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_plan

SEQUENCE_LENGTH = 32
GLOBAL_BATCH_SIZE = 8


def tiny_llama(*, num_layers: int = 4, tie_embeddings: bool = False, sliding_window: int | None = None) -> ModelSpec:
    """Grouped-query attention, gated MLP, RMS norm, rope; a vocabulary that no tp divides."""
    attention = AttentionSpec(num_heads=8, num_kv_heads=4, head_dim=8, v_head_dim=8, sliding_window=sliding_window)
    return _model("llama", LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=96, gated=True))).model_copy(
        update={"tie_embeddings": tie_embeddings, "layer_runs": (LayerRun(kind=0, count=num_layers),)}
    )


def tiny_gpt2() -> ModelSpec:
    """Biases everywhere, layer norm, learned positions, plain MLP."""
    attention = AttentionSpec(num_heads=8, num_kv_heads=8, head_dim=8, v_head_dim=8, qkv_bias=True, output_bias=True)
    layer = LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=96, gated=False, bias=True), norm="layer")
    return _model("gpt2", layer).model_copy(
        update={
            "learned_positions": 65,
            "position": "learned",
            "activation_function": "gelu_new",
            "tie_embeddings": True,
        }
    )


def tiny_qwen3_moe(*, shared: int = 0, dense_layers: int = 1) -> ModelSpec:
    """Query and key norms, 8 experts of which 2 work, the first layer dense."""
    attention = AttentionSpec(num_heads=8, num_kv_heads=4, head_dim=8, v_head_dim=8, qk_norm="per_head")
    moe = MoeSpec(
        num_experts=8,
        top_k=2,
        expert_intermediate_size=48,
        shared_intermediate_size=shared,
        shared_gate=bool(shared),
    )
    dense = LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=96, gated=True))
    runs = ([LayerRun(kind=1, count=dense_layers)] if dense_layers else []) + [LayerRun(kind=0, count=4 - dense_layers)]
    return _model("qwen3_moe", LayerSpec(attention=attention, moe=moe)).model_copy(
        update={"layer_kinds": (LayerSpec(attention=attention, moe=moe), dense), "layer_runs": tuple(runs)}
    )


def tiny_plan(
    strategy: Strategy,
    model: ModelSpec | None = None,
    layers_per_chunk: Sequence[int] | None = None,
    recompute_layers_per_chunk: Sequence[int] | None = None,
) -> Plan:
    """A plan whose global batch is always 8 samples of 32 tokens."""
    workload = Workload(global_batch_size=GLOBAL_BATCH_SIZE, sequence_length=SEQUENCE_LENGTH)
    if strategy.global_batch_size != GLOBAL_BATCH_SIZE:
        raise ValueError(f"{strategy.global_batch_size} samples, wanted {GLOBAL_BATCH_SIZE}")
    return make_plan(
        strategy,
        model or tiny_llama(),
        workload=workload,
        layers_per_chunk=layers_per_chunk,
        recompute_layers_per_chunk=recompute_layers_per_chunk,
    )


def _model(family: str, layer: LayerSpec) -> ModelSpec:
    return ModelSpec(
        name=f"tiny-{family}",
        family=family,
        hidden_size=64,
        vocab_size=131,
        layer_kinds=(layer,),
        layer_runs=(LayerRun(kind=0, count=4),),
        max_sequence_length=64,
    )
