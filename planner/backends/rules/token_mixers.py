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
    "conv_module": "a convolution module",
    "window_cross": "cross-attention to windows of frames",
    "tower_cross": "cross-attention to a tower",
    "none": "an MLP or experts alone",
}


def beyond_attention(model: ModelSpec) -> str | None:
    """The first part of the model that plain attention, an MLP and experts do not make; None where they make all."""
    if model.encoder is not None:
        return "an encoder beside the decoder"
    found = next((said for kind in used_kinds(model) if (said := _beyond(kind))), None)
    return found or ("added tables or a transform before the head" if model.ends is not None else None)


def beside_a_decoder(model: ModelSpec) -> str | None:
    """What the model has that a decoder of next tokens has not: an encoder, attention to later tokens, BERT's ends."""
    if model.encoder is not None:
        return "an encoder beside the decoder"
    if any(isinstance(kind.attention, AttentionSpec) and not kind.attention.causal for kind in used_kinds(model)):
        return "attention to later tokens"
    return "added tables or a transform before the head" if model.ends is not None else None


def decoders_only(source: str, instead: str = "") -> SpaceRule:
    """The rule (id ``K5``) of a back-end that trains decoders of next tokens alone; ``instead``: what to do."""
    hint = f"; {instead}" if instead else ""

    def check(given: RuleInput) -> str | None:
        other = beside_a_decoder(given.model)
        return None if other is None else f"it trains decoders of next tokens; the model has {other}{hint}"

    return SpaceRule("K5", source, check)


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


def runs_along_sequence(model: ModelSpec) -> str | None:
    """A token mixer whose state runs along the sequence, so that no rank may hold only a part of it; None without."""
    for kind in used_kinds(model):
        for mixer in (kind.attention, kind.beside):
            if mixer is not None and mixer.kind not in ("gqa", "mla", "none"):
                return MIXER_WORDS[mixer.kind]
    return None


def softmax_attention(model: ModelSpec) -> AttentionSpec | None:
    """The first softmax attention of the model; None where no layer has any."""
    found = (kind.attention for kind in used_kinds(model))
    return next((attention for attention in found if isinstance(attention, AttentionSpec)), None)
