"""Diffusion transformers: how they are read, what a sample makes, and what the layers hold."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from planner.model.builtin import builtin_model
from planner.model.denoiser import DenoiserSpec
from planner.model.diffusers_config import DENOISERS, model_from_diffusers_config
from planner.model.diffusers_config.reading import REFUSED
from planner.model.flops import forward_flops_per_token, source_tokens
from planner.model.load import load_model
from planner.model.operators import embedding_operators, head_operators, layer_operators
from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec
from planner.question.agreement import contradictions
from planner.question.problem import Workload
from profiles.errors import DocumentInvalid


def _read(kind: str, **keys: Any) -> ModelSpec:
    return model_from_diffusers_config({"_class_name": kind, **keys}, "m", "config.json")


def _denoiser(model: ModelSpec) -> DenoiserSpec:
    assert model.denoiser is not None
    return model.denoiser


@pytest.mark.parametrize(
    ("kind", "sample", "tokens"),
    [
        # (81 - 1) / 4 + 1 = 21 latent frames; 480 / 16 = 30 rows, 832 / 16 = 52 columns
        ("WanTransformer3DModel", (81, 480, 832), 21 * 30 * 52),
        ("WanTransformer3DModel", (1, 480, 832), 30 * 52),
        # (121 - 1) / 8 + 1 = 16; 512 / 32, 768 / 32
        ("LTXVideoTransformer3DModel", (121, 512, 768), 16 * 16 * 24),
        # Text in the sequence: 226 tokens; (49 - 1) / 4 + 1 = 13; 480 / 16, 720 / 16
        ("CogVideoXTransformer3DModel", (49, 480, 720), 226 + 13 * 30 * 45),
        # Packed by two: 1024 / 16 a side; 512 text tokens
        ("FluxTransformer2DModel", (1, 1024, 1024), 512 + 64 * 64),
        ("SD3Transformer2DModel", (1, 1024, 1024), 333 + 64 * 64),
        ("PixArtTransformer2DModel", (1, 1024, 1024), 64 * 64),
    ],
)
def test_a_sample_makes_tokens_by_vae_and_patch(kind: str, sample: tuple[int, int, int], tokens: int) -> None:
    assert _denoiser(_read(kind)).sample_tokens(*sample) == tokens


def test_latents_of_48_channels_are_those_of_the_vae_that_compresses_sixteen() -> None:
    denoiser = _denoiser(_read("WanTransformer3DModel", in_channels=48, out_channels=48))
    assert denoiser.sample_tokens(121, 704, 1280) == 31 * 22 * 40


def test_two_latent_frames_a_patch_round_up() -> None:
    denoiser = _denoiser(_read("CogVideoXTransformer3DModel", patch_size_t=2))
    assert denoiser.sample_tokens(81, 768, 1360) == 226 + 11 * 48 * 85


@pytest.mark.parametrize(
    ("sample", "said"),
    [((81, 481, 832), "81x480x832"), ((80, 480, 832), "use 81 frames"), ((0, 480, 832), "at least one frame")],
)
def test_sizes_that_patches_do_not_divide_are_told(sample: tuple[int, int, int], said: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        _denoiser(_read("WanTransformer3DModel")).sample_tokens(*sample)
    assert said in f"{caught.value.what} {caught.value.hint}"


def test_wan_2_1_is_built_in() -> None:
    model = builtin_model("wan-2.1-14b")
    assert total_parameters(model) == 14_288_491_584
    assert model.vocab_size == 0
    assert model.max_sequence_length == 21 * 45 * 80
    assert ModelSpec.model_validate_json(model.model_dump_json()) == model


@pytest.mark.parametrize("kind", DENOISERS)
def test_documents_come_back(kind: str) -> None:
    model = _read(kind)
    assert ModelSpec.model_validate_json(model.model_dump_json()) == model


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"_class_name": "UNet2DConditionModel"}, "is not supported"),
        ({"_class_name": "WanPipeline"}, "pipeline of several models"),
        ({"_class_name": 3}, "must be the name of a class"),
        ({"_class_name": "WanTransformer3DModel", "num_experts": 8}, "is no argument of the class"),
        ({"_class_name": "WanTransformer3DModel", "num_layers": 0}, "must be at least 1"),
        ({"_class_name": "WanTransformer3DModel", "patch_size": [1, 2]}, "three positive whole numbers"),
        ({"_class_name": "WanTransformer3DModel", "image_dim": 1280}, "added_kv_proj_dim must be 5120"),
        ({"_class_name": "WanTransformer3DModel", "added_kv_proj_dim": 5120}, "null where image_dim is null"),
        ({"_class_name": "WanTransformer3DModel", "pos_embed_seq_len": 514}, "must be None to be modelled"),
        ({"_class_name": "MochiTransformer3DModel"}, "a text stream of another width"),
        ({"_class_name": "LTXVideoTransformer3DModel", "activation_fn": "geglu"}, "to be modelled"),
        ({"_class_name": "LTXVideoTransformer3DModel", "cross_attention_dim": 64}, "must be 2048"),
        ({"_class_name": "SD3Transformer2DModel", "dual_attention_layers": [0]}, "must be () to be modelled"),
        ({"_class_name": "FluxTransformer2DModel", "num_layers": 0, "num_single_layers": 0}, "possible model"),
    ],
)
def test_what_is_not_understood_is_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        model_from_diffusers_config(keys, "m", "config.json")
    assert said in str(caught.value)


def test_a_key_that_diffusers_drops_with_a_warning_is_dropped() -> None:
    """The released Qwen-Image config holds it."""
    keys = {"_class_name": "QwenImageTransformer2DModel"}
    released = model_from_diffusers_config(keys | {"pooled_projection_dim": 768}, "m", "config.json")
    assert released == model_from_diffusers_config(keys, "m", "config.json")


def test_arguments_that_are_fractions_stay() -> None:
    model = _read("CosmosTransformer3DModel", rope_scale=[0.8333, 3.0, 3.0])
    assert dict(_denoiser(model).config)["rope_scale"] == (0.8333, 3.0, 3.0)
    assert ModelSpec.model_validate_json(model.model_dump_json()) == model


def test_all_findings_come_at_once() -> None:
    with pytest.raises(DocumentInvalid) as caught:
        _read("WanTransformer3DModel", num_layers=0, ffn_dim="wide", unknown=1)
    for key in ("num_layers", "ffn_dim", "unknown"):
        assert key in str(caught.value)


def test_a_pipelines_folder_is_read_through_its_transformer(tmp_path: Path) -> None:
    inside = tmp_path / "my-wan" / "transformer"
    inside.mkdir(parents=True)
    (inside / "config.json").write_text(json.dumps({"_class_name": "WanTransformer3DModel", "num_layers": 3}))
    (tmp_path / "my-wan" / "model_index.json").write_text(json.dumps({"_class_name": "WanPipeline"}))
    for reference in (tmp_path / "my-wan", inside, inside / "config.json"):
        model = load_model(str(reference))
        assert (model.name, model.num_layers) == ("my-wan", 3)


def test_the_refused_classes_are_those_of_the_installed_release_and_no_other() -> None:
    assert not set(REFUSED) & set(DENOISERS)
    for kind in REFUSED:
        assert importlib.util.find_spec("diffusers") is None or hasattr(importlib.import_module("diffusers"), kind)


def test_a_picture_beside_the_text_has_keys_and_values_of_its_own() -> None:
    model = _read("WanTransformer3DModel", image_dim=1280, added_kv_proj_dim=5120)
    plain = builtin_model("wan-2.1-14b")
    assert _denoiser(model).text_tokens == 512 + 257
    found, without = ({each.name: each for each in layer_operators(each, 0)} for each in (model, plain))
    for name in ("cross_key_values", "cross_key_norm"):
        assert found[name].parameters == 2 * without[name].parameters
    assert found["cross_queries"] == without["cross_queries"]


def test_layers_of_two_streams_hold_their_weights_twice_and_run_once() -> None:
    model = _read("FluxTransformer2DModel", num_layers=1, num_single_layers=1)
    operators = {each.name: each for each in layer_operators(model, 0)}
    hidden = model.hidden_size
    assert operators["qkv"].parameters == 2 * (3 * hidden * hidden + 3 * hidden)
    assert operators["qkv"].out_features == 3 * hidden
    assert operators["latent_conditioning"].parameters == 6 * hidden * hidden + 6 * hidden
    assert operators["latent_conditioning"].read_width == 0


def test_the_last_text_stream_of_sd3_ends_at_its_keys_and_values() -> None:
    model = _read("SD3Transformer2DModel")
    first, last = ({each.name: each.parameters for each in layer_operators(model, kind)} for kind in (0, 1))
    assert first["qkv"] == last["qkv"]
    assert first["up"] == 2 * last["up"]
    assert first["output_projection"] == 2 * last["output_projection"]


def test_a_denoiser_has_no_vocabulary() -> None:
    model = builtin_model("wan-2.1-14b")
    names = {each.name for each in (*embedding_operators(model), *head_operators(model))}
    assert not names & {"token_embedding", "lm_head", "cross_entropy"}
    assert {"patch_embedding", "text_states", "output_projection", "denoising_loss"} <= names
    with pytest.raises(ValueError, match="a denoiser has 0"):
        ModelSpec.model_validate(model.model_dump() | {"vocab_size": 8})
    with pytest.raises(ValueError, match="every other model at least 1"):
        ModelSpec.model_validate(builtin_model("llama-2-7b").model_dump() | {"vocab_size": 0})


def test_attention_to_text_grows_with_the_text_alone() -> None:
    model = builtin_model("wan-2.1-14b")
    assert source_tokens(model, 32760) == 512
    short, long = (forward_flops_per_token(model, 32760, source_length=text) for text in (256, 512))
    layer, hidden, text = model.num_layers, model.hidden_size, 256
    read = 2.0 * text / 32760 * (4096 * hidden + hidden * hidden)
    keys = layer * 2.0 * text / 32760 * 2 * hidden * hidden
    assert long - short == pytest.approx(read + keys + layer * 4.0 * text * hidden)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"sequences": {"kind": "padded", "mean": 100.0}}, "/workload/sequences"),
        ({"training": {"kind": "lora"}}, "/workload/training"),
        ({"sequence_length": 512}, "/workload/sequence_length"),
    ],
)
def test_workloads_of_decoders_are_refused(changes: dict[str, Any], pointer: str) -> None:
    asked = {"global_batch_size": 8, "sequence_length": 4608} | changes
    found = contradictions(_read("FluxTransformer2DModel"), Workload.model_validate(asked))
    assert pointer in [where for where, _ in found]


def test_text_of_another_length_is_a_good_workload() -> None:
    workload = Workload(global_batch_size=8, sequence_length=32760, source_length=226)
    assert contradictions(builtin_model("wan-2.1-14b"), workload) == ()
