"""The native decoder computes the function of the ``transformers`` class of the same family."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")
pytest.importorskip("transformers", reason="the reference classes live in transformers")

import torch
from torch import Tensor

from planner.backends.native.trainer.attention import whole_sequence_attention
from planner.backends.native.trainer.initialize import initialize
from planner.backends.native.trainer.model import DecoderChunk, on_meta, whole_model
from planner.model.spec import ModelSpec
from tests.native_models import tiny_gpt2, tiny_llama, tiny_qwen3_moe

pytestmark = pytest.mark.slow
TOKENS = 24

LLAMA_NAMES = {
    "embedding.weight": "model.embed_tokens.weight",
    "final_norm.weight": "model.norm.weight",
    "head.weight": "lm_head.weight",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "attention.query_norm": "self_attn.q_norm",
    "attention.key_norm": "self_attn.k_norm",
    "attention_norm": "input_layernorm",
    "feed_forward_norm": "post_attention_layernorm",
    "feed_forward.up": "mlp.up_proj",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.down": "mlp.down_proj",
    "feed_forward.router": "mlp.gate",
}


def native(model: ModelSpec) -> DecoderChunk:
    chunk = on_meta(model, whole_model(model))
    chunk.to_empty(device="cpu")
    chunk.tie()
    initialize(chunk, torch.device("cpu"), 0)
    with torch.no_grad():
        for name, parameter in chunk.named_parameters():
            # Norms and biases that are not one and zero, so that a wrong place shows.
            generator = torch.Generator().manual_seed(len(name))
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    chunk.place(torch.arange(TOKENS), whole_sequence_attention)
    return chunk


def logits(chunk: DecoderChunk, reference: Any) -> tuple[Tensor, Tensor]:
    tokens = torch.randint(0, 131, (2, TOKENS), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return chunk(tokens), reference(input_ids=tokens, use_cache=False).logits


def llama_state(chunk: DecoderChunk) -> dict[str, Tensor]:
    """Parameters under their HF names; experts stacked as the class wants them."""
    state: dict[str, Tensor] = {}
    for name, value in chunk.named_parameters():
        if ".experts." in name:
            continue
        found = re.fullmatch(r"layers\.(\d+)\.(.*)\.(weight|bias)", name)
        if found:
            state[f"model.layers.{found[1]}.{LLAMA_NAMES[found[2]]}.{found[3]}"] = value
        else:
            state[LLAMA_NAMES[name]] = value
    return state


def load(reference: Any, state: dict[str, Tensor]) -> Any:
    missing, unexpected = reference.load_state_dict(state, strict=False)
    assert not unexpected
    assert all("rotary" in name or "attn.bias" in name for name in missing), missing
    return reference.eval()


def llama_config(kind: Any, **changes: Any) -> Any:
    sizes = {
        "vocab_size": 131,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 8,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "attn_implementation": "eager",
    }
    return kind(**sizes, **changes)


def test_llama() -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    chunk = native(tiny_llama())
    reference = load(LlamaForCausalLM(llama_config(LlamaConfig)), llama_state(chunk))
    ours, theirs = logits(chunk, reference)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_mistral_with_a_sliding_window() -> None:
    from transformers import MistralConfig, MistralForCausalLM

    chunk = native(tiny_llama(sliding_window=5))
    reference = load(MistralForCausalLM(llama_config(MistralConfig, sliding_window=5)), llama_state(chunk))
    ours, theirs = logits(chunk, reference)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    chunk = native(tiny_llama())
    assert not torch.allclose(logits(chunk, reference)[0], theirs, rtol=1e-2, atol=1e-2)


def test_qwen3_moe() -> None:
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    chunk = native(tiny_qwen3_moe(dense_layers=1))
    config = llama_config(
        Qwen3MoeConfig,
        num_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=48,
        norm_topk_prob=True,
        mlp_only_layers=[0],
    )
    reference = Qwen3MoeForCausalLM(config)
    state = llama_state(chunk)
    for index, block in chunk.blocks().items():
        experts = dict(block.named_parameters())
        if "feed_forward.experts.up" in experts:
            prefix = f"model.layers.{index}.mlp.experts"
            gate, up = experts["feed_forward.experts.gate"], experts["feed_forward.experts.up"]
            state[f"{prefix}.gate_up_proj"] = torch.cat((gate, up), dim=1)
            state[f"{prefix}.down_proj"] = experts["feed_forward.experts.down"]
    ours, theirs = logits(chunk, load(reference, state))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_gpt2() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    chunk = native(tiny_gpt2())
    config = GPT2Config(vocab_size=131, n_positions=65, n_embd=64, n_layer=4, n_head=8, n_inner=96)
    ours_by_name = dict(chunk.named_parameters())
    state: dict[str, Tensor] = {
        "transformer.wte.weight": ours_by_name["embedding.weight"],
        "lm_head.weight": ours_by_name["embedding.weight"],
        "transformer.wpe.weight": ours_by_name["position_embedding.weight"],
        "transformer.ln_f.weight": ours_by_name["final_norm.weight"],
        "transformer.ln_f.bias": ours_by_name["final_norm.bias"],
    }
    names = {
        "attention_norm": "ln_1",
        "feed_forward_norm": "ln_2",
        "attention.output": "attn.c_proj",
        "feed_forward.up": "mlp.c_fc",
        "feed_forward.down": "mlp.c_proj",
    }
    for index, block in chunk.blocks().items():
        parts = dict(block.named_parameters())
        prefix = f"transformer.h.{index}"
        for leaf in ("weight", "bias"):
            for ours_name, theirs_name in names.items():
                value = parts[f"{ours_name}.{leaf}"]
                # GPT-2's Conv1D keeps its matrices transposed.
                state[f"{prefix}.{theirs_name}.{leaf}"] = value.T if value.ndim == 2 else value
            fused = torch.cat([parts[f"attention.{name}.{leaf}"] for name in ("query", "key", "value")])
            state[f"{prefix}.attn.c_attn.{leaf}"] = fused.T if fused.ndim == 2 else fused
    ours, theirs = logits(chunk, load(GPT2LMHeadModel(config), state))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
