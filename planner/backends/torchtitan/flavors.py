"""The models that torchtitan ships, by family and flavor, as the planner describes models.

``flavors_0_2_2.json``: family -> flavor -> sizes by the names of its model arguments, dumped from the release's
``models/*/__init__.py`` and ``model/args.py`` with defaults filled in (``tests/contract/test_torchtitan_jobs.py``
compares them); 0.3.0 has the same sizes under the same names.  Flavors that differ in the attention kernel alone stand
under the plain name.  Widths: ``models/llama3/model/model.py:332`` and ``models/llama4/model/model.py:390``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from planner.errors import DocumentInvalid
from planner.model.layer_runs import runs_of
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec, MoeSpec

KERNELS = ("_flex_attn", "_varlen_attn", "_flex", "_varlen")
"""Endings of flavors that name an attention kernel."""
Sizes = Mapping[str, Any]


@cache
def flavors() -> dict[str, dict[str, Sizes]]:
    """Family -> flavor -> sizes."""
    text = Path(__file__).with_name("flavors_0_2_2.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def flavor_model(family: str, flavor: str, where: str) -> ModelSpec:
    """The model of a family and flavor.  Raises DocumentInvalid for one that torchtitan does not ship."""
    known = flavors()
    if family not in known:
        raise DocumentInvalid(
            f"the sizes of model {family!r} are not known", where=where, hint=f"known are {', '.join(known)}"
        )
    plain = next((flavor.removesuffix(end) for end in KERNELS if flavor.endswith(end)), flavor)
    if plain not in known[family]:
        raise DocumentInvalid(
            f"{family} has no flavor {flavor!r}", where=where, hint=f"it has {', '.join(known[family])}"
        )
    sizes = known[family][plain]
    if sizes.get("every_n_layers_nope"):
        raise DocumentInvalid(
            f"{family} {flavor} has layers without positions that look at blocks of tokens, which is not described",
            where=where,
            hint="describe the model in YAML",
        )
    layers = {"llama3": _llama3, "llama4": _llama4, "qwen3": _qwen3, "deepseek_v3": _deepseek}[family](sizes)
    kinds, runs = runs_of(layers)
    return ModelSpec(
        name=f"{family}-{flavor}".lower(),
        family=family,
        hidden_size=sizes["dim"],
        vocab_size=sizes["vocab_size"],
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=sizes.get("enable_weight_tying", False),
        max_sequence_length=sizes["max_seq_len"],
        activation_function="silu",
        position="rope",
        rotary_base=sizes["rope_theta"],
        norm_epsilon=sizes["norm_eps"],
    )


def _attention(sizes: Sizes, **more: Any) -> AttentionSpec:
    heads, width = sizes["n_heads"], sizes.get("head_dim") or sizes["dim"] // sizes["n_heads"]
    return AttentionSpec(
        num_heads=heads, num_kv_heads=sizes["n_kv_heads"] or heads, head_dim=width, v_head_dim=width, **more
    )


def _scaled(sizes: Sizes) -> int:
    """Two thirds of four times the width, times the factor, before it is rounded up."""
    width = int(2 * 4 * sizes["dim"] / 3)
    return width if sizes["ffn_dim_multiplier"] is None else int(sizes["ffn_dim_multiplier"] * width)


def _rounded(width: int, multiple: int) -> int:
    return -(-width // multiple) * multiple


def _layer(attention: AttentionSpec, width: int) -> LayerSpec:
    return LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=width, gated=True, bias=False), norm="rms")


def _sparse(attention: AttentionSpec, sizes: Sizes, width: int) -> LayerSpec:
    moe = sizes["moe_args"]
    groups = moe["num_expert_groups"] or 1
    spec = MoeSpec(
        num_experts=moe["num_experts"],
        top_k=moe["top_k"],
        expert_intermediate_size=width,
        gated=True,
        shared_intermediate_size=moe["num_shared_experts"] * width,
        score_function=moe["score_func"],
        num_groups=groups,
        top_k_groups=moe["num_limited_groups"] or groups,
    )
    return LayerSpec(attention=attention, moe=spec, norm="rms")


def _llama3(sizes: Sizes) -> list[LayerSpec]:
    return [_layer(_attention(sizes), _rounded(_scaled(sizes), sizes["multiple_of"]))] * sizes["n_layers"]


def _llama4(sizes: Sizes) -> list[LayerSpec]:
    """Experts on every so-manieth layer, as wide as their number a token lets them be."""
    attention, moe, multiple = _attention(sizes), sizes["moe_args"], sizes["multiple_of"]
    expert = _rounded(int(_scaled(sizes) / (moe["top_k"] + moe["num_shared_experts"])), multiple)
    dense = _layer(attention, _rounded(_scaled(sizes), multiple))
    sparse = _sparse(attention, sizes, expert)
    period = sizes["interleave_moe_layer_step"]
    return [dense if (layer + 1) % period else sparse for layer in range(sizes["n_layers"])]


def _qwen3(sizes: Sizes) -> list[LayerSpec]:
    attention = _attention(sizes, qk_norm="per_head")
    if sizes["moe_enabled"]:
        return [_sparse(attention, sizes, sizes["moe_inter_dim"])] * sizes["n_layers"]
    return [_layer(attention, sizes["hidden_dim"])] * sizes["n_layers"]


def _deepseek(sizes: Sizes) -> list[LayerSpec]:
    heads = sizes["n_heads"]
    attention = AttentionSpec(
        kind="mla",
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=sizes["qk_nope_head_dim"] + sizes["qk_rope_head_dim"],
        v_head_dim=sizes["v_head_dim"],
        q_lora_rank=sizes["q_lora_rank"] or None,
        kv_lora_rank=sizes["kv_lora_rank"],
        qk_rope_head_dim=sizes["qk_rope_head_dim"],
    )
    dense, sparse = _layer(attention, sizes["inter_dim"]), _sparse(attention, sizes, sizes["moe_inter_dim"])
    return [dense] * sizes["n_dense_layers"] + [sparse] * (sizes["n_layers"] - sizes["n_dense_layers"])
