"""Forward FLOPs equal what torch counts for the ``transformers`` classes as they run."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.flops import forward_flops_per_token
from planner.model.hf_config import model_from_hf_config

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

_TINY: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GPT: dict[str, Any] = {key: _TINY[key] for key in ("vocab_size", "pad_token_id", "bos_token_id", "eos_token_id")}


@pytest.mark.parametrize(
    ("model_type", "config"),
    [
        ("llama", _TINY),
        ("qwen3", {**_TINY, "head_dim": 32}),
        ("gemma2", _TINY),
        ("olmo2", _TINY),
        ("glm4", _TINY),
        ("gpt2", {**_GPT, "n_embd": 64, "n_layer": 3, "n_head": 4}),
        ("gpt_neox", {**_GPT, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}),
        (
            "opt",
            {**_GPT, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "word_embed_proj_dim": 32},
        ),
        (
            "deepseek_v3",
            {
                **_TINY,
                "num_key_value_heads": 4,
                "q_lora_rank": 24,
                "kv_lora_rank": 16,
                "first_k_dense_replace": 3,
                "num_nextn_predict_layers": 0,
            },
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_forward_flops_equal_torch(model_type: str, config: dict[str, Any]) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    length = 48
    hf_config = transformers.AutoConfig.for_model(model_type, **config)
    model = transformers.AutoModelForCausalLM.from_config(hf_config, attn_implementation="eager").eval()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=torch.zeros(1, length, dtype=torch.long), use_cache=False)
    spec = model_from_hf_config({"model_type": model_type, **config}, "tiny", "config.json")
    # torch counts the whole s x s square, and the small product that makes the rotary angles (freqs = position @
    # inverse frequencies), which is no work of the model proper.
    rotary = 0
    if spec.position == "rope":
        dim = spec.layer_kinds[0].attention.qk_rope_head_dim or spec.layer_kinds[0].attention.head_dim
        rotary = 2 * (dim // 2) * length
    ours = forward_flops_per_token(spec, length, causal=False) * length
    assert counter.get_total_flops() - ours in (0, rotary)
