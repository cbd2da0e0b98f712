"""The models that the native trainer cannot build, or does not compute as their reference does."""

from __future__ import annotations

from collections.abc import Mapping

from planner.backends.native.capabilities import ACTIVATION_NAMES
from planner.backends.rules.forward_factors import FORWARD_FACTORS
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.rule import RuleInput, SpaceRule, mixtures, used_kinds
from planner.backends.rules.token_mixers import beyond_attention
from planner.backends.rules.training_kinds import training_kinds

_MODEL = "planner/backends/native/trainer/model.py: not built"

SCALED_FAMILIES: Mapping[str, str] = {
    "gemma": "scales the embedding by the square root of its width",
    "gemma2": "scales the embedding by the square root of its width and caps the logits",
    "gemma3_text": "scales the embedding by the square root of its width",
    "granite": "multiplies embedding, residuals, attention and logits by constants",
}
"""Families whose forward pass has factors that a model description does not hold."""


def _latent(given: RuleInput) -> str | None:
    latent = any(kind.attention.kind == "mla" for kind in used_kinds(given.model))
    return "latent attention (MLA) is not built; use --backend megatron" if latent else None


def _extra_parts(given: RuleInput) -> str | None:
    model, other = given.model, beyond_attention(given.model)
    if other is not None:
        return f"the trainer does not build {other}; name another --backend"
    if model.mtp is not None:
        return "multi-token prediction modules are not built; use --backend megatron"
    if model.towers:
        return f"{model.towers[0].called} is not built"
    if model.embedding_size not in (None, model.hidden_size):
        return f"an embedding of width {model.embedding_size} on layers of width {model.hidden_size} is not built"
    return None


def _attention(given: RuleInput) -> str | None:
    for kind in used_kinds(given.model):
        attention = kind.attention
        if attention.sinks:
            return "attention sinks are not built: torch's fused attention has no place for them"
        if attention.logit_softcap is not None:
            return "a cap on attention logits is not built: torch's fused attention has no place for it"
        if not attention.causal:
            return "attention that is not causal is not built"
        if attention.num_kv_heads and attention.num_heads % attention.num_kv_heads:
            return f"{attention.num_heads} heads do not divide over {attention.num_kv_heads} key-value heads"
    return None


def _positions(given: RuleInput) -> str | None:
    model, length = given.model, given.workload.sequence_length
    if model.position == "alibi":
        return "ALiBi position biases are not built: torch's fused attention has no place for them"
    if 0 < model.learned_positions < length:
        return f"the position table has {model.learned_positions} rows, fewer than the {length} tokens of a sample"
    return None


def _experts(given: RuleInput) -> str | None:
    for moe in mixtures(given.model):
        if moe.expert_bias:
            return "experts with bias are not built"
        if moe.num_groups > 1:
            return "group-limited routing is not built"
        if moe.router_bias and moe.score_function == "sigmoid":
            return "a score correction bias of the router is not built: it is updated outside the gradient"
    return None


def _layers(given: RuleInput) -> str | None:
    for kind in used_kinds(given.model):
        if (kind.mlp is None) == (kind.moe is None):
            return "a layer must have exactly one of MLP and experts"
        if kind.parallel_residual and (kind.num_norms not in (1, 2) or kind.norm_placement != "pre"):
            return "parallel residuals are built with one or two norms in front"
        if not kind.parallel_residual and kind.num_norms not in (2, 4):
            return f"layers with {kind.num_norms} norms are not built (2, or 4 around both branches)"
    return None


def _activation(given: RuleInput) -> str | None:
    name = given.model.activation_function
    known = ", ".join(sorted(ACTIVATION_NAMES))
    return None if name in ACTIVATION_NAMES else f"the activation {name!r} is not built; there are {known}"


def _scaled(given: RuleInput) -> str | None:
    reason = SCALED_FAMILIES.get(given.model.family) or FORWARD_FACTORS.get(given.model.family)
    return None if reason is None else f"{given.model.family} {reason}, which a model description does not hold"


def _training(given: RuleInput) -> str | None:
    workload = given.workload
    if workload.precision != "bf16":
        return f"precision {workload.precision} is not built; use bf16"
    if workload.optimizer != "adam":
        return f"the optimizer {workload.optimizer} is not built; use adam"
    return "dropout is not built" if workload.dropout else None


MODEL_RULES: tuple[SpaceRule, ...] = (
    training_kinds("planner/backends/native/trainer: not built", instead="name --backend accelerate"),
    packed_sequences("planner/backends/native/trainer/attention.py: no document mask"),
    SpaceRule("M1", _MODEL, _latent),
    SpaceRule("M2", _MODEL, _extra_parts),
    SpaceRule("M3", "planner/backends/native/trainer/attention.py: not built", _attention),
    SpaceRule("M4", "planner/backends/native/trainer/attention.py, positions.py: not built", _positions),
    SpaceRule("M5", "planner/backends/native/trainer/mixture.py: not built", _experts),
    SpaceRule("M6", _MODEL, _layers),
    SpaceRule("M7", "planner/backends/native/trainer/feed_forward.py: ACTIVATIONS", _activation),
    SpaceRule("M8", "transformers 5 modeling_gemma*.py, modeling_granite.py", _scaled),
    SpaceRule("M9", "planner/backends/native/trainer/data_parallel.py, optimizer.py: not built", _training),
)
