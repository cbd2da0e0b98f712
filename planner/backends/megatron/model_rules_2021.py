"""The models that Megatron-LM of 2021 cannot build: those for which its ``arguments.py`` has no flag.

``Builds`` says what a fork of it has more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.backends.megatron.model_rules import GELU_NAMES, linear_biases
from planner.backends.rules.rule import RuleInput, SpaceRule, used_kinds
from planner.backends.rules.token_mixers import beyond_attention
from planner.model.spec import ModelSpec, TokenMixer


@dataclass(frozen=True, slots=True)
class Builds:
    """What the flags of a fork can build beside GPT with learned positions and plain GELU MLPs."""

    positions: frozenset[str] = frozenset({"learned"})
    gated: bool = False
    embedding_norm: bool = False
    own_head: bool = False
    without_bias: bool = False


def _attention(model: ModelSpec) -> str | None:
    other = beyond_attention(model)
    if other is not None:
        return other
    for attention in (kind.attention for kind in used_kinds(model)):
        if attention.kind == "mla":
            return "latent attention"
        if attention.num_kv_heads != attention.num_heads:
            return f"grouped key-value heads ({attention.num_kv_heads} for {attention.num_heads} query heads)"
        if not attention.causal or _has_more(attention):
            return "attention other than plain causal attention"
    return None


def _has_more(attention: TokenMixer) -> bool:
    return bool(attention.sliding_window or attention.logit_softcap or attention.sinks or attention.qk_norm != "none")


def _experts(model: ModelSpec) -> str | None:
    if model.mtp is not None:
        return "multi-token prediction"
    return "experts" if any(kind.moe for kind in used_kinds(model)) else None


def _norms(model: ModelSpec, builds: Builds) -> str | None:
    kinds = used_kinds(model)
    plain = all(kind.norm == "layer" and kind.num_norms == 2 and kind.norm_placement == "pre" for kind in kinds)
    if not plain or not model.final_norm:
        return "norms other than LayerNorm with bias before attention and MLP"
    if any(kind.parallel_residual for kind in kinds):
        return "attention and MLP side by side on the residual stream"
    biases = {bias for kind in kinds for bias in (*linear_biases(kind), kind.attention.qkv_bias)}
    if biases != {True} and not (builds.without_bias and biases == {False}):
        return "linear layers without bias"
    return "different layers" if len(kinds) > 1 else None


def _table(model: ModelSpec, builds: Builds) -> str | None:
    if model.towers:
        return model.towers[0].called
    if model.embedding_size not in (None, model.hidden_size):
        return "an embedding of another width than the layers"
    if model.head_bias:
        return "an output head with bias"
    return None if model.tie_embeddings or builds.own_head else "an output head of its own"


def model_rules(source: str, builds: Builds) -> tuple[SpaceRule, ...]:
    """The rules of one fork; ``source``: its ``arguments.py``."""

    def positions(model: ModelSpec) -> str | None:
        if model.embedding_norm and not builds.embedding_norm:
            return "a norm after the embedding"
        return None if model.position in builds.positions else f"{model.position} positions"

    def mlp(model: ModelSpec) -> str | None:
        parts = [part for kind in used_kinds(model) for part in (kind.mlp, kind.moe) if part]
        gated = any(part.gated for part in parts)
        if gated:
            return None if builds.gated else "gated MLPs"
        name = model.activation_function
        return None if name in GELU_NAMES else f"the activation {name!r}"

    def norms(model: ModelSpec) -> str | None:
        return _norms(model, builds)

    def table(model: ModelSpec) -> str | None:
        return _table(model, builds)

    checks = {"M1": _attention, "M2": positions, "M3": mlp, "M4": _experts, "M5": norms, "M6": table}
    return tuple(SpaceRule(rule_id, source, _refusing(inner)) for rule_id, inner in checks.items())


def _refusing(inner: Callable[[ModelSpec], str | None]) -> Callable[[RuleInput], str | None]:
    def check(given: RuleInput) -> str | None:
        what = inner(given.model)
        return None if what is None else f"arguments.py has no flag for {what}; name another --backend or release"

    return check


MODEL_RULES = model_rules("Megatron-LM v2.5 megatron/arguments.py: no flag says it", Builds())
