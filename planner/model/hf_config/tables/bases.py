"""What several families have alike; an entry of a table says what differs (``dataclasses.replace``)."""

from __future__ import annotations

from dataclasses import replace

from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.layer_rules import dense_first

LATENT = Decoder(latent=True, head_dim=None)
"""Multi-head latent attention."""
DEEPSEEK_EXPERTS = Experts(
    dense_first("first_k_dense_replace"),
    count="n_routed_experts",
    shared="n_shared_experts",
    score_function="sigmoid",
    groups=True,
)
"""Experts with the keys of DeepSeek-V3."""
ONE_DENSE_FIRST = replace(DEEPSEEK_EXPERTS, layers=dense_first("first_k_dense_replace", 1))
"""The same where the class without the key has one dense layer."""
OLDER = Decoder(
    kv_heads=None,
    head_dim=None,
    epsilon="layer_norm_eps",
    qkv_bias=True,
    output_bias=True,
    gated=False,
    mlp_bias=True,
    norm="layer",
)
"""Layer norm, as many key-value heads as heads, a plain MLP, biases."""
