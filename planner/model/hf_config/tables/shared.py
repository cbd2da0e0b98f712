"""Families that share keys and values, give layers inputs, or mix states of earlier layers: ``transformers`` 5.23."""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.gemma_forms import (
    gemma3n_ends,
    gemma3n_layers,
    gemma3n_streams,
    gemma3n_width,
    gemma4_ends,
    gemma4_layers,
)
from planner.model.hf_config.inkling_forms import inkling2_ends, inkling2_parts, inkling_parts, sliding_heads
from planner.model.hf_config.layer_forms import every, in_turn
from planner.model.hf_config.layer_rules import all_routed, full_every, full_first_and_every, listed_as
from planner.model.spec import LayerSpec, PartSpec

_GEMMA4 = Decoder(
    qk_norm="per_head",
    num_norms=4,
    activation="hidden_activation",
    windows=full_first_and_every(6, first=False, last=True),
    shaped=gemma4_layers,
    ends=gemma4_ends,
)
_INKLING = listed_as("hybrid", "hybrid_sliding", period=6, key="sliding_window_size")


def _head_transform(keys: ClassKeys, hidden: int) -> tuple[tuple[PartSpec, ...], tuple[PartSpec, ...]]:
    """A projection and a norm before the head (modernbert-decoder)."""
    dense = PartSpec(name="head_transform", kind="projection", in_features=hidden, bias=keys.on("classifier_bias"))
    return (), (dense, PartSpec(name="head_norm", kind="norm", in_features=hidden))


def _first_without_norm(_: ClassKeys, __: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """The first layer has no norm before its attention: the embedding's is the same."""
    return [layers[0].model_copy(update={"num_norms": 1}), *layers[1:]]


SHARED: dict[str, Decoder] = {
    "gemma3n_text": Decoder(
        qk_norm="per_head",
        num_norms=4,
        activation="hidden_activation",
        windows=full_every(5),
        dense_width=gemma3n_width,
        shaped=gemma3n_layers,
        residual=gemma3n_streams,
        ends=gemma3n_ends,
    ),
    "gemma4_text": _GEMMA4,
    "gemma4_unified_text": _GEMMA4,
    "inkling_text": Decoder(
        qkv_bias=False,
        output_bias=False,
        qk_norm="per_head",
        position="none",
        ties=False,
        embedding_norm=True,
        windows=_INKLING,
        experts=Experts(all_routed, count="n_routed_experts", shared="n_shared_experts", score_function="sigmoid"),
        shaped=in_turn(sliding_heads, every(inkling_parts)),
        predicted_layers="num_mtp_layers",
    ),
    "inkling2_text": Decoder(
        qkv_bias=False,
        output_bias=False,
        position="none",
        ties=False,
        embedding_norm=True,
        windows=_INKLING,
        experts=Experts(all_routed, count="n_routed_experts", score_function="sigmoid"),
        shaped=in_turn(sliding_heads, every(inkling2_parts)),
        ends=inkling2_ends,
    ),
    "modernbert-decoder": Decoder(
        kv_heads=None,
        head_dim=None,
        activation="hidden_activation",
        epsilon="norm_eps",
        norm="layer_no_bias",
        mlp_bias="mlp_bias",
        embedding_norm=True,
        windows=full_every("global_attn_every_n_layers", first_full=True),
        head_bias="decoder_bias",
        refused=(("norm_bias", "norms with a bias in some places"),),
        shaped=_first_without_norm,
        ends=_head_transform,
    ),
}
