"""Which layers have more than softmax attention followed by an MLP or experts, in words that rules use."""

from __future__ import annotations

from collections.abc import Mapping

from planner.backends.rules.rule import RuleInput, SpaceRule, used_kinds
from planner.model.spec import AttentionSpec, LayerSpec, ModelSpec

MIXER_WORDS: Mapping[str, str] = {
    "gated_delta": "gated DeltaNet",
    "kimi_delta": "Kimi delta attention",
    "mamba1": "Mamba",
    "mamba2": "Mamba-2",
    "lightning": "lightning attention",
    "short_conv": "short convolutions",
    "compressed": "compressed attention",
    "conv_module": "a convolution module",
    "window_cross": "cross-attention to windows of frames",
    "expert_attention": "attention made of experts",
    "mlstm": "mLSTM",
    "rg_lru": "RG-LRU",
    "wkv": "RWKV",
    "tower_cross": "cross-attention to a tower",
    "local_global": "attention within blocks and to global tokens",
    "relative": "attention with projected distances",
    "traced": "traced operators (a family without a table)",
    "none": "an MLP or experts alone",
}
TRACED = "layers that were traced from its module, whose parts have no names here"
DENOISER = "a denoiser of latents (a diffusion transformer) in the place of a decoder"


def beyond_attention(model: ModelSpec) -> str | None:
    """The first part of the model that plain attention, an MLP and experts do not make; None where they make all."""
    if model.denoiser is not None:
        return DENOISER
    if model.traced is not None:
        return TRACED
    if model.encoder is not None:
        return "an encoder beside the decoder"
    found = beyond_mixers(model) or next((said for kind in used_kinds(model) if (said := _beyond(kind))), None)
    return found or ("added tables or a transform before the head" if model.ends is not None else None)


def beyond_mixers(model: ModelSpec) -> str | None:
    """What stands beside mixers, MLP and experts, which no back-end that builds from shapes has; None without.

    Megatron-LM core_v0.19.0 has no hyper-connections (no such module under ``megatron/``; issues 2919 and 4468, pull
    request 5795), no per-layer parts, no shared keys and values.
    """
    if model.traced is not None:
        return TRACED
    if model.residual is not None:
        kind = "AltUp" if model.residual.kind == "altup" else "hyper-connections"
        return f"{model.residual.streams} residual streams ({kind})"
    if model.entry_parts or model.exit_parts:
        first = (*model.entry_parts, *model.exit_parts)[0]
        return f"a part before or after its layers ({first.name.replace('_', ' ')})"
    return next((said for kind in used_kinds(model) if (said := _beyond_shapes(kind))), None)


def _beyond_shapes(kind: LayerSpec) -> str | None:
    if kind.reuses_weights:
        return "layers that run with the weights of earlier ones"
    attention = kind.attention
    sums = _beyond_sums(attention) if isinstance(attention, AttentionSpec) else None
    return sums or _beyond_experts(kind) or _beyond_parts(kind)


def beside_a_decoder(model: ModelSpec) -> str | None:
    """What the model has that a decoder of next tokens has not: an encoder, attention to later tokens, BERT's ends."""
    if model.denoiser is not None:
        return DENOISER
    if model.encoder is not None:
        return "an encoder beside the decoder"
    if any(isinstance(kind.attention, AttentionSpec) and not kind.attention.causal for kind in used_kinds(model)):
        return "attention to later tokens"
    return "added tables or a transform before the head" if model.ends is not None else None


def decoders_only(source: str, instead: str = "") -> SpaceRule:
    """The rule (id ``K7``) of a back-end that trains decoders of next tokens alone; ``instead``: what to do."""
    hint = f"; {instead}" if instead else ""

    def check(given: RuleInput) -> str | None:
        other = beside_a_decoder(given.model)
        return None if other is None else f"it trains decoders of next tokens; the model has {other}{hint}"

    return SpaceRule("K7", source, check)


def _beyond(kind: LayerSpec) -> str | None:
    attention = kind.attention
    if not isinstance(attention, AttentionSpec):
        return f"layers of {MIXER_WORDS[attention.kind]}"
    if kind.beside is not None:
        return f"{MIXER_WORDS[kind.beside.kind]} beside attention"
    if not attention.causal:
        return "attention to later tokens"
    if attention.position_bias is not None:
        return "learned biases of attention by distance"
    if kind.adapter is not None:
        return "adapters behind the MLP"
    if attention.indexer is not None:
        return "attention to the tokens that an indexer chooses (DSA)"
    if attention.output_gate:
        return "a gate on the output of attention"
    if kind.mlp is None and kind.moe is None:
        return "layers of attention alone"
    return "experts on a latent width" if kind.moe is not None and kind.moe.latent_size else None


def _beyond_sums(attention: AttentionSpec) -> str | None:
    if attention.differential:
        return "differential attention"
    if attention.input_size is not None:
        return "attention to the embedding beside the layer's input"
    if attention.reuses_key_values:
        return "keys and values shared between layers"
    return "keys that are values too" if attention.keys_are_values else None


def _beyond_experts(kind: LayerSpec) -> str | None:
    if kind.moe is None:
        return None
    if kind.experts_beside:
        return "experts beside an MLP"
    if kind.moe.zero_experts:
        return "experts that compute nothing"
    return "a router that scores a state of its own" if kind.moe.router_input_size else None


def _beyond_parts(kind: LayerSpec) -> str | None:
    """The first small part of a layer, by its name."""
    return f"a part of its own in the layer ({kind.parts[0].name.replace('_', ' ')})" if kind.parts else None


def runs_along_sequence(model: ModelSpec) -> str | None:
    """A token mixer whose state runs along the sequence, so that no rank may hold only a part of it; None without."""
    for kind in used_kinds(model):
        for mixer in (kind.attention, kind.beside):
            if mixer is not None and mixer.kind not in ("gqa", "mla", "expert_attention", "none"):
                # Compressed entries come from the whole past: a ring of ranks does not apply to them either.
                return MIXER_WORDS[mixer.kind]
    return None


def softmax_attention(model: ModelSpec) -> AttentionSpec | None:
    """The first softmax attention of the model; None where no layer has any."""
    found = (kind.attention for kind in used_kinds(model))
    return next((attention for attention in found if isinstance(attention, AttentionSpec)), None)
