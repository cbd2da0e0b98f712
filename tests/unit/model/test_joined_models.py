"""Encoder-decoders whose layers have rows beside tokens, held weights, local attention or two classes."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.flops import forward_flops
from planner.model.hf_config import model_from_hf_config
from planner.model.operator import Operator
from planner.model.operators import head_operators, layer_operators
from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec
from profiles.validation import FindingsInvalid

CROSSED = {"model_type": "bert", "is_decoder": True, "add_cross_attention": True}
COUNTS: dict[str, int] = {
    # What the classes of transformers 5.23 build with their default configs (benchmarks/tables/model-types.json).
    "led": 459_801_600,
    "longt5": 60_506_624,
    "pegasus_x": 568_568_832,
    "prophetnet": 391_321_600,
    "pix2struct": 282_285_696,
    "seamless_m4t": 1_370_531_840,
    "trocr": 253_559_808,
    "udop": 742_440_960,
    "xlnet": 360_300_800,
    "encoder-decoder": 247_363_386,
    "vision-encoder-decoder": 224_270_394,
}


def read(kind: str, **keys: Any) -> ModelSpec:
    sides: dict[str, Any] = {"vocab_size": 33201} if kind == "udop" else {}
    return model_from_hf_config({"model_type": kind, **sides, **keys}, "read", "config.json")


def operators(spec: ModelSpec, kind: int) -> dict[str, Operator]:
    return {each.name: each for each in layer_operators(spec, kind)}


@pytest.mark.parametrize("kind", COUNTS)
def test_the_default_config_has_the_parameters_of_the_class(kind: str) -> None:
    assert total_parameters(read(kind)) == COUNTS[kind]


def test_a_pooler_without_a_size_is_as_wide_as_the_layers() -> None:
    """Released TrOCR configs say nothing of it."""
    said = read("vision-encoder-decoder", encoder={"model_type": "vit", "pooler_output_size": 768})
    assert said == read("vision-encoder-decoder")


def test_held_weights_have_parameters_and_no_work() -> None:
    led = operators(read("led"), 0)
    held = led["global_queries"]
    assert held.parameters == 1024 * 1024 + 1024
    assert forward_flops(held, 4096) == 0.0
    assert held.saved_width == held.read_width == 0
    # Overlapping chunks: 2 windows of keys and 1.5 of values.
    assert led["attention_core"].window == 7 * 512 // 4


def test_every_stream_of_prophetnet_runs_through_its_layers_and_the_head_reads_the_further_ones() -> None:
    spec, one = read("prophetnet"), read("prophetnet", ngram=1)
    decoder, fewer = operators(spec, 1), operators(one, 1)
    assert decoder["qkv"].tokens_per_token == 3.0
    assert fewer["qkv"].tokens_per_token == 2.0
    # Main keys for all three streams, own keys for two of them.
    assert decoder["attention_core"].qk_dim == 5 * 64
    assert decoder["cross_core"].qk_dim == 3 * 64
    assert decoder["cross_key_values"].tokens_per_token == 1.0
    heads = {each.name: each for each in head_operators(spec)}
    assert heads["lm_head"].tokens_per_token == 2.0


def test_global_tokens_are_rows_of_a_sequence_and_not_of_a_token() -> None:
    layer = operators(read("pegasus_x"), 0)
    per_token = 2 * 1024 * 3 * 1024
    assert forward_flops(layer["qkv"], 64) == per_token * (1 + 32 / 64)
    assert forward_flops(layer["qkv"], 16384) == per_token * (1 + 32 / 16384)
    assert forward_flops(layer["global_core"], 4096) == 2 * 32 * 2 * 1024


def test_summaries_of_blocks_share_weights_and_shorten_what_is_seen() -> None:
    layer = operators(read("longt5", encoder_attention_type="transient-global"), 0)
    assert layer["summary_key_values"].parameters == 0
    assert forward_flops(layer["summary_key_values"], 4096) == 2 * 512 * 1024 / 16
    assert forward_flops(layer["summary_core"], 4096) == 2 * (4096 / 16) * 2 * 512
    assert layer["attention_core"].window == 3 * 128


def test_one_softmax_over_both_sequences_has_no_weights_of_its_own() -> None:
    spec = read("t5gemma2")
    merged = {name: each for name, each in operators(spec, 3).items() if name.startswith("cross")}
    assert set(merged) == {"cross_key_values", "cross_core"}
    assert sum(each.parameters for each in merged.values()) == 0
    assert merged["cross_core"].of_source
    assert forward_flops(merged["cross_key_values"], 64) == 2 * 2304 * 2 * 4 * 256


def test_a_decoder_without_cross_attention_is_refused_behind_an_encoder() -> None:
    with pytest.raises(FindingsInvalid, match="must be true behind an encoder"):
        read("encoder-decoder", decoder=CROSSED | {"add_cross_attention": False})
    with pytest.raises(FindingsInvalid, match="is not read in this place"):
        read("encoder-decoder", encoder={"model_type": "longformer"})
    with pytest.raises(FindingsInvalid, match="a projection between the two is not modelled"):
        read("encoder-decoder", decoder=CROSSED | {"hidden_size": 384, "num_attention_heads": 6})
