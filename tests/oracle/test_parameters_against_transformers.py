"""Parameter counts equal the ``transformers`` classes, built on the meta device, to the last parameter.

The classes build no multi-token-prediction module, and keep router correction biases as buffers, not parameters.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from benchmarks.model_types import RESULT
from planner.model.builtin import builtin_document, builtin_model, builtin_models
from planner.model.hf_config import model_from_hf_config, supported_model_types
from planner.model.parameters import active_parameters, mtp_parameters, parameters_by_module, total_parameters
from tests.sampling import drawn

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

_VISION = {"qwen2_vl", "qwen2_5_vl", "llava", "gemma3"}

TINY: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 999,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_IDS: dict[str, Any] = {"vocab_size": 999, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_NEOX: dict[str, Any] = {**_IDS, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_OPT: dict[str, Any] = {**_NEOX, "ffn_dim": 100}
_EXPERTS: dict[str, Any] = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 40}
_ROUTED: dict[str, Any] = {"n_routed_experts": 16, "num_experts_per_tok": 2, "moe_intermediate_size": 40}
_QWEN_TOWER: dict[str, Any] = {"depth": 2, "embed_dim": 32, "num_heads": 4, "hidden_size": 64}
_TOWER: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 50,
    "image_size": 56,
    "patch_size": 14,
}

CASES: list[tuple[str, dict[str, Any]]] = [
    ("llama", TINY),
    ("llama", {**TINY, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": 24}),
    ("llama", {key: value for key, value in TINY.items() if key != "num_key_value_heads"}),
    ("mistral", TINY),
    ("mistral", {**TINY, "head_dim": 24, "sliding_window": None, "tie_word_embeddings": True}),
    ("qwen2", TINY),
    ("qwen2", {**TINY, "tie_word_embeddings": True, "use_sliding_window": True, "max_window_layers": 1}),
    ("qwen3", TINY),
    ("qwen3", {**TINY, "attention_bias": True, "head_dim": 24}),
    ("phi3", TINY),
    ("phi3", {**TINY, "tie_word_embeddings": True}),
    ("olmo2", TINY),
    ("olmo2", {**TINY, "attention_bias": True}),
    ("granite", {**TINY, "mlp_bias": True}),
    ("granite", {**TINY, "attention_bias": True, "tie_word_embeddings": True}),
    ("glm4", TINY),
    ("glm4", {**TINY, "attention_bias": False}),
    ("gemma2", TINY),
    ("gemma2", {**TINY, "attention_bias": True, "tie_word_embeddings": False}),
    ("gemma3_text", TINY),
    ("gemma3_text", {**TINY, "num_hidden_layers": 7, "sliding_window": 16, "sliding_window_pattern": 3}),
    ("gpt2", {**_IDS, "n_embd": 64, "n_layer": 3, "n_head": 4}),
    ("gpt2", {**_IDS, "n_embd": 64, "n_layer": 3, "n_head": 4, "n_inner": 100, "tie_word_embeddings": False}),
    ("gpt_neox", {**_NEOX, "intermediate_size": 200}),
    ("gpt_neox", {**_NEOX, "use_parallel_residual": False, "attention_bias": False, "tie_word_embeddings": True}),
    ("opt", _OPT),
    ("opt", {**_OPT, "word_embed_proj_dim": 32, "do_layer_norm_before": False}),
    ("opt", {**_OPT, "enable_bias": False, "layer_norm_elementwise_affine": False}),
    ("opt", {**_OPT, "_remove_final_layer_norm": True, "tie_word_embeddings": False}),
    ("bloom", {**_IDS, "hidden_size": 64, "n_layer": 2, "n_head": 4}),
    ("mpt", {**_IDS, "d_model": 64, "n_layers": 2, "n_heads": 4}),
    ("mixtral", TINY),
    ("mixtral", {**TINY, "num_local_experts": 5, "num_experts_per_tok": 3, "head_dim": 24}),
    ("qwen2_moe", {**TINY, **_EXPERTS, "decoder_sparse_step": 2, "shared_expert_intermediate_size": 48}),
    ("qwen2_moe", {**TINY, **_EXPERTS, "qkv_bias": False, "mlp_only_layers": [1]}),
    ("qwen3_moe", {**TINY, **_EXPERTS}),
    ("qwen3_moe", {**TINY, **_EXPERTS, "attention_bias": True, "mlp_only_layers": [0], "head_dim": 24}),
    ("glm4_moe", {**TINY, **_ROUTED, "use_qk_norm": True, "attention_bias": True}),
    ("glm4_moe", {**TINY, **_ROUTED, "first_k_dense_replace": 0, "n_shared_experts": 2}),
    ("gpt_oss", {**TINY, "num_local_experts": 6, "num_experts_per_tok": 2}),
    ("deepseek_v2", {**TINY, **_ROUTED, "q_lora_rank": None, "kv_lora_rank": 16, "mlp_bias": True}),
    ("deepseek_v2", {**TINY, **_ROUTED, "q_lora_rank": 20, "first_k_dense_replace": 1, "attention_bias": True}),
    ("deepseek_v3", {**TINY, **_ROUTED, "q_lora_rank": 20, "kv_lora_rank": 16, "first_k_dense_replace": 1}),
    ("deepseek_v3", {**TINY, **_ROUTED, "q_lora_rank": None, "attention_bias": True, "tie_word_embeddings": True}),
    ("kimi_k2", {**TINY, **_ROUTED, "n_group": 1, "topk_group": 1, "num_nextn_predict_layers": 0}),
    (
        "qwen2_vl",
        {"text_config": TINY, "vision_config": {"depth": 2, "embed_dim": 32, "num_heads": 4, "hidden_size": 64}},
    ),
    (
        "qwen2_5_vl",
        {
            "text_config": TINY,
            "vision_config": {
                "depth": 2,
                "hidden_size": 32,
                "num_heads": 4,
                "intermediate_size": 50,
                "out_hidden_size": 64,
            },
        },
    ),
    (
        "llava",
        {
            "text_config": {**TINY, "model_type": "llama"},
            "vision_config": {**_TOWER, "model_type": "clip_vision_model"},
        },
    ),
    ("llava", {"text_config": {**TINY, "model_type": "qwen2"}}),
    (
        "llava",
        {
            "text_config": {**TINY, "model_type": "mistral"},
            "vision_feature_layer": [-2, -1],
            "multimodal_projector_bias": False,
            "vision_config": {**_TOWER, "model_type": "siglip_vision_model"},
        },
    ),
    (
        "gemma3",
        {
            "text_config": {**TINY, "model_type": "gemma3_text"},
            "vision_config": {**_TOWER, "model_type": "siglip_vision_model", "vision_use_head": False},
            "mm_tokens_per_image": 4,
        },
    ),
]


def meta_model(model_type: str, config: dict[str, Any]) -> Any:
    """The transformers class on the meta device; kimi_k2 has no class of its own, its code is deepseek_v3's."""
    known = "deepseek_v3" if model_type == "kimi_k2" else model_type
    hf_config = transformers.AutoConfig.for_model(known, **copy.deepcopy(config))
    auto = transformers.AutoModelForImageTextToText if model_type in _VISION else transformers.AutoModelForCausalLM
    if model_type == "t5":
        auto = transformers.AutoModelForSeq2SeqLM
    with torch.device("meta"):
        return auto.from_config(hf_config)


def counts(model: Any, *, experts: int, top_k: int) -> tuple[int, int]:
    """Total and active parameters of a meta model."""
    total = routed = 0
    for name, parameter in model.named_parameters():
        total += parameter.numel()
        if ".experts." in name:
            routed += parameter.numel()
    return total, total - routed // experts * (experts - top_k)


def check(model_type: str, config: dict[str, Any]) -> None:
    spec = model_from_hf_config({"model_type": model_type, **copy.deepcopy(config)}, "tiny", "config.json")
    moes = [kind.moe for kind in spec.layer_kinds if kind.moe is not None]
    experts, top_k = (moes[0].num_experts, moes[0].top_k) if moes else (1, 1)
    total, active = counts(meta_model(model_type, config), experts=experts, top_k=top_k)
    assert total_parameters(spec) == total
    assert active_parameters(spec) == active
    assert sum(parameters_by_module(spec).values()) == total


@pytest.mark.parametrize(("model_type", "config"), CASES, ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)])
def test_tiny_model_has_the_parameters_of_its_class(model_type: str, config: dict[str, Any]) -> None:
    check(model_type, config)


def test_every_supported_model_type_is_checked() -> None:
    surveyed = json.loads(RESULT.read_text(encoding="utf-8"))["types"]  # tests/contract/test_model_types.py asks again
    exact = {name for name, found in surveyed.items() if found["verdict"] == "exact"}
    assert {model_type for model_type, _ in CASES} | exact == set(supported_model_types())


_CATALOGUE = [name for name in builtin_models() if "hf_config" in builtin_document(name)]


@pytest.mark.parametrize("name", drawn(_CATALOGUE, len(_CATALOGUE) // 3))
def test_builtin_model_has_the_parameters_of_its_class(name: str) -> None:
    config = dict(builtin_document(name)["hf_config"])
    check(str(config.pop("model_type")), config)


@pytest.mark.parametrize("model_type", ["llama", "qwen2", "gpt2", "gemma2", "bloom", "qwen2_vl", "llava"])
def test_an_empty_config_takes_the_defaults_of_the_class(model_type: str) -> None:
    if model_type == "qwen2_vl":  # its default tower does not fit its default language model
        check(model_type, {"vision_config": {"hidden_size": 8192}})
    else:
        check(model_type, {})


def test_mtp_modules_are_counted_apart_from_the_class() -> None:
    spec = builtin_model("deepseek-v3")
    # arXiv 2412.19437, section 4.2: 671 B; the released weights hold a 14 B multi-token-prediction module, of which
    # embedding and head (2 * 129280 * 7168) are shared with the main model.
    released = 14_000_000_000
    shared = 2 * 129280 * 7168
    assert mtp_parameters(spec) == pytest.approx(released - shared, rel=0.05)
    assert total_parameters(spec) == 671_026_404_352
