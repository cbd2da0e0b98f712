"""DBRX, whose sizes stand in ``attn_config`` and ``ffn_config``; shapes of ``transformers`` 5.23 ``models/dbrx``."""

from __future__ import annotations

from planner.model.hf_config.layers import divided_heads, read_num_layers, read_vocabulary, read_width
from planner.model.hf_config.reader import ConfigReader
from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, ModelSpec, MoeSpec


def import_dbrx(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a DBRX: grouped-query attention and experts in every layer, layer norms without bias."""
    hidden = read_width(reader, "d_model", "hidden_size", default=2048)
    heads = reader.integer("n_heads", "num_attention_heads", default=16)
    width = divided_heads(reader, "n_heads", hidden, heads)
    attention, feed = reader.child("attn_config"), reader.child("ffn_config")
    kv_heads = attention.integer("kv_n_heads", default=1)
    if heads % kv_heads:
        attention.refuse("kv_n_heads", f"must divide n_heads = {heads}, is {kv_heads}")
        kv_heads = heads
    experts, top_k = feed.integer("moe_num_experts", default=4), feed.integer("moe_top_k", default=1)
    if top_k > experts:
        feed.refuse("moe_top_k", f"must not exceed the {experts} experts, is {top_k}")
        top_k = experts
    moe = MoeSpec(
        num_experts=experts,
        top_k=top_k,
        expert_intermediate_size=feed.integer("ffn_hidden_size", default=3584, maximum=10_000_000),
    )
    softmax = AttentionSpec(num_heads=heads, num_kv_heads=kv_heads, head_dim=width, v_head_dim=width)
    layer = LayerSpec(attention=softmax, moe=moe, norm="layer_no_bias")
    count = read_num_layers(reader, "n_layers", "num_hidden_layers", default=24)
    base = attention.number("rope_theta", default=10000.0)
    if isinstance(reader.data.get("rope_parameters"), dict):
        base = reader.child("rope_parameters").number("rope_theta", default=base)
    return ModelSpec(
        name=name,
        family="dbrx",
        hidden_size=hidden,
        vocab_size=read_vocabulary(reader, 32000),
        layer_kinds=(layer,),
        layer_runs=(LayerRun(kind=0, count=count),),
        tie_embeddings=reader.boolean("tie_word_embeddings", default=False),
        max_sequence_length=reader.integer("max_seq_len", "max_position_embeddings", default=2048),
        rotary_base=base,
    )
