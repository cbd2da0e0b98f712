"""Families with sparse attention, and those with several residual streams; shapes of ``transformers`` 5.23."""

from __future__ import annotations

from dataclasses import replace

from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.layer_forms import attention_gate, every, in_turn
from planner.model.hf_config.layer_rules import all_routed, hash_routed, moe_frequency
from planner.model.hf_config.mixer_rules import attention_every, gated_delta, listed_mixers
from planner.model.hf_config.sparse_forms import (
    axk2_parts,
    block_sparse,
    compressed_mixers,
    dots3_layers,
    gated_stream_head,
    gated_streams,
    mixed_streams,
    qwen_sparse,
    sinks_and_shared_choice,
    stream_head,
    unmixed_streams,
)
from planner.model.hf_config.tables.bases import LATENT, ONE_DENSE_FIRST

SPARSE: dict[str, Decoder] = {
    "axk2": replace(LATENT, indexer=True, experts=ONE_DENSE_FIRST, shaped=every(axk2_parts)),
    "deepseek_v4": Decoder(
        mixers=compressed_mixers,
        experts=Experts(hash_routed, count="n_routed_experts", shared=1, shared_bias="mlp_bias"),
        residual=mixed_streams,
        ends=stream_head,
        predicted_layers="num_nextn_predict_layers",
    ),
    "dots3_note_text": replace(
        LATENT,
        indexer=True,
        unindexed=("sliding_attention", "full_attention"),
        without_parameters=("mlp_bias",),
        experts=replace(ONE_DENSE_FIRST, shared=0, shared_width="shared_experts_intermediate_size"),
        shaped=in_turn(dots3_layers, every(attention_gate(per_head=True))),
    ),
    "hy_v4": replace(
        LATENT,
        indexer=True,
        experts=ONE_DENSE_FIRST,
        residual=unmixed_streams,
        ends=stream_head,
        shaped=in_turn(sinks_and_shared_choice, every(attention_gate())),
    ),
    "minimax_m3_vl_text": Decoder(
        qkv_bias=False,
        output_bias=False,
        qk_norm="per_head",
        rotary_dim="rotary_dim",
        dense_intermediate="dense_intermediate_size",
        experts=Experts(
            moe_frequency,
            count="num_local_experts",
            width="intermediate_size",
            shared_width="shared_intermediate_size",
            score_function="sigmoid",
        ),
        shaped=block_sparse,
    ),
    "qwen4_exp_text": Decoder(
        qk_norm="per_head",
        output_gate=True,
        mixers=listed_mixers(
            gated_delta, attention_every("full_attention_interval"), attention=("full_attention", "indexed_attention")
        ),
        experts=Experts(all_routed, shared_width="shared_expert_intermediate_size", shared_gate=True),
        num_norms=0,  # the norm of the streams is the only one
        final_norm=False,
        residual=gated_streams,
        ends=gated_stream_head,
        shaped=qwen_sparse,
    ),
}
