"""A small traced model as a document: what a trace of a tiny llama gave, for tests that trace nothing themselves."""

from __future__ import annotations

import json
from typing import Any

from planner.model.spec import ModelSpec
from profiles.validation import read_document

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 256,
    "max_position_embeddings": 512,
}


def make_traced_model(**changes: Any) -> ModelSpec:
    """Two equal layers, an entry with the token table, an exit with norm and head; ``changes`` of its trace."""
    hidden, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]

    def product(name: str, depth: int, columns: int, saved: int = 0) -> dict[str, Any]:
        shape = {"in_features": depth, "out_features": columns, "parameters": depth * columns}
        return {"name": name, "op_class": "matmul", **shape, "saved_width": saved}

    def norm(name: str) -> dict[str, Any]:
        sizes = {"read_width": hidden, "write_width": hidden, "saved_width": hidden}
        return {"name": name, "op_class": "norm", "parameters": hidden, **sizes}

    attention = {"num_heads": 4, "num_kv_heads": 4, "qk_dim": 16, "v_dim": 16, "saved_width": 3 * hidden}
    activation = {"read_width": 2 * inner, "write_width": inner, "saved_width": 2 * inner}
    layer = [
        norm("input_layernorm.mul"),
        product("self_attn.q_proj", hidden, hidden, hidden),
        product("self_attn.k_proj", hidden, hidden),
        product("self_attn.v_proj", hidden, hidden),
        {"name": "self_attn.attention", "op_class": "attention", **attention},
        product("self_attn.o_proj", hidden, hidden, hidden),
        {"name": "add", "op_class": "residual", "read_width": 2 * hidden, "write_width": hidden},
        norm("post_attention_layernorm.mul"),
        product("mlp.gate_proj", hidden, inner, hidden),
        product("mlp.up_proj", hidden, inner),
        {"name": "mlp.mul", "op_class": "activation", **activation},
        product("mlp.down_proj", inner, hidden, inner),
        {"name": "add.2", "op_class": "residual", "read_width": 2 * hidden, "write_width": hidden},
    ]
    table = {"parameters": CONFIG["vocab_size"] * hidden, "read_width": hidden, "write_width": hidden}
    trace = {
        "config": json.dumps(CONFIG),
        "class_name": "LlamaForCausalLM",
        "auto_class": "AutoModelForCausalLM",
        "software": "transformers 5.23.0, torch 2.13.0",
        "lengths": [128, 256, 512, 384],
        "layers": "model.layers",
        "checkpoints": True,
        "attention": "sdpa",
        "experts": "batched_mm",
        "entry": [{"name": "model.embed_tokens", "op_class": "embedding", **table}],
        "exit": [norm("model.norm.mul"), product("lm_head", hidden, CONFIG["vocab_size"], hidden)],
        **changes,
    }
    document = {
        "name": "traced",
        "family": "llama",
        "hidden_size": hidden,
        "vocab_size": CONFIG["vocab_size"],
        "layer_kinds": [{"attention": {"kind": "traced", "operators": layer}, "num_norms": 0}],
        "layer_runs": [{"kind": 0, "count": 2}],
        "max_sequence_length": 512,
        "position": "none",
        "final_norm": False,
        "traced": trace,
    }
    return read_document(ModelSpec, document, "a test")
