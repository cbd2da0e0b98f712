"""What layers with sparse attention and several residual streams have: rules that the tables of families name.

Shapes: ``transformers`` 5.23 modeling files of deepseek_v4, hy_v4, axk2, dots3_note, minimax_m3_vl, qwen4_exp.
"""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layer_forms import changed, softmax_of
from planner.model.hf_config.reader import ConfigReader
from planner.model.mixers.compressed import CompressedAttentionSpec
from planner.model.mixers.indexer import IndexerSpec
from planner.model.spec import AttentionSpec, LayerSpec, PartSpec, ResidualSpec, TokenMixer

Ends = tuple[tuple[PartSpec, ...], tuple[PartSpec, ...]]

_SLIDING, _SPARSE, _HEAVY = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
_RATIOS = {0: _SLIDING, 4: _SPARSE, 128: _HEAVY}


def compressed_mixers(keys: ClassKeys, num_layers: int, _: int) -> list[TokenMixer | None]:
    """DeepSeek-V4: every layer slides, and sees compressed entries as ``layer_types`` or ``compress_ratios`` say."""
    keys.optional("n_shared_experts", minimum=0)  # the class builds one, whatever it says
    rates = keys.reader.child("compress_rates") if isinstance(keys.reader.data.get("compress_rates"), dict) else None
    sparse = keys.reader.integer("compress_rate_csa", default=4)
    heavy = keys.reader.integer("compress_rate_hca", default=128)
    if rates is not None:
        sparse, heavy = rates.integer(_SPARSE, default=sparse), rates.integer(_HEAVY, default=heavy)
    plain = CompressedAttentionSpec.model_construct(
        num_heads=keys.integer("num_attention_heads"),
        head_dim=keys.integer("head_dim"),
        query_rank=keys.integer("q_lora_rank"),
        window=keys.integer("sliding_window"),
        output_groups=keys.integer("o_groups"),
        output_rank=keys.integer("o_lora_rank"),
    )
    if plain.num_heads * plain.head_dim % plain.output_groups:
        keys.reader.refuse("o_groups", f"must divide {plain.num_heads} heads of {plain.head_dim}")
    indexer = {
        "index_heads": keys.integer("index_n_heads"),
        "index_head_dim": keys.integer("index_head_dim"),
        "index_top_k": keys.integer("index_topk"),
    }
    kinds = {
        _SLIDING: plain,
        _HEAVY: plain.model_copy(update={"rate": heavy}),
        _SPARSE: plain.model_copy(update={"rate": sparse, "overlap": True, **indexer}),
    }
    return [kinds[word] for word in _compressed_words(keys, num_layers)]


def _compressed_words(keys: ClassKeys, num_layers: int) -> list[str]:
    """One word a layer; without any, two heavily compressed ones, then these and sparse ones in turn."""
    names = keys.reader.strings("layer_types")
    ratios = keys.reader.integers("compress_ratios", [])
    if names is None and ratios:
        for ratio in sorted(set(ratios) - set(_RATIOS)):
            keys.reader.refuse("compress_ratios", f"holds {ratio}; 0, 4 and 128 are read")
        names = [_RATIOS.get(ratio, _SLIDING) for ratio in ratios[:num_layers]]
    if names is None:
        return [_SPARSE if layer > 1 and layer % 2 else _HEAVY for layer in range(num_layers)]
    for name in sorted(set(names) - set(_RATIOS.values())):
        keys.reader.refuse("layer_types", f"holds {name[:40]!r}; {', '.join(sorted(_RATIOS.values()))} are read")
    if len(names) != num_layers:
        keys.reader.refuse("layer_types", f"must hold one entry a layer ({num_layers}), holds {len(names)}")
        return [_SLIDING] * num_layers
    return [name if name in _RATIOS.values() else _SLIDING for name in names]


def mixed_streams(keys: ClassKeys) -> ResidualSpec:
    """Streams that a matrix mixes at every block (deepseek_v4)."""
    return ResidualSpec(streams=_streams(keys, "hc_mult"), learned_scales=3)


def unmixed_streams(keys: ClassKeys) -> ResidualSpec:
    """Streams that keep what they are, with collapse and spread (hy_v4)."""
    return ResidualSpec(streams=_streams(keys, "hc_mult"), mixes=False, learned_scales=2)


def gated_streams(keys: ClassKeys) -> ResidualSpec:
    """Streams whose collapse has a weight for every feature, through a narrow pair (qwen4_exp)."""
    streams = _streams(keys, "hc_count")
    return ResidualSpec(streams=streams, mixes=False, bias=False, rank=keys.integer("hc_lowrank"))


def _streams(keys: ClassKeys, key: str) -> int:
    streams = keys.integer(key)
    if streams < 2:
        keys.reader.refuse(key, f"must be at least 2 residual streams, is {streams}")
    return max(streams, 2)


def stream_head(keys: ClassKeys, hidden: int) -> Ends:
    """One collapse of all streams behind the last layer."""
    streams = _streams(keys, "hc_mult")
    wide = streams * hidden
    learned = wide * streams + streams + 1
    head = PartSpec(name="stream_head", kind="projection", in_features=wide, out_features=streams, learned=learned)
    return (), (head,)


def gated_stream_head(keys: ClassKeys, hidden: int) -> Ends:
    """The collapse of qwen4_exp behind the last layer."""
    wide, rank = _streams(keys, "hc_count") * hidden, keys.integer("hc_lowrank")
    return (), (
        PartSpec(name="stream_head_norm", kind="norm", in_features=wide),
        PartSpec(name="stream_head_down", kind="projection", in_features=wide, out_features=rank),
        PartSpec(name="stream_head_up", kind="projection", in_features=rank, out_features=wide),
    )


def sinks_and_shared_choice(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """A sink a head; without ``indexer_types`` all but the first and every fourth layer reuse a choice (hy_v4)."""
    listed = keys.reader.data.get("indexer_types") is not None
    found = []
    for index, layer in enumerate(layers):
        attention = softmax_of(layer)
        assert attention is not None
        indexer = attention.indexer
        if indexer is not None and not listed and index and (index - 1) % 4:
            indexer = indexer.model_copy(update={"reuses_choice": True})
        found.append(changed(layer, sinks=True, indexer=indexer))
    return found


def axk2_parts(keys: ClassKeys, hidden: int, layer: LayerSpec, _: int) -> tuple[PartSpec, ...]:
    """Queries and an output gate from the latent before its norm too, and gates on the norms through a narrow pair."""
    attention = softmax_of(layer)
    assert attention is not None
    rank, narrow = attention.q_lora_rank, keys.integer("gated_norm_rank")
    if rank is None:
        keys.reader.refuse("q_lora_rank", "is required: the output gate reads the query latent")
        return ()
    queries, values = attention.num_heads * attention.head_dim, attention.num_heads * attention.v_head_dim
    parts = [
        PartSpec(name="q_up_raw", kind="projection", in_features=rank, out_features=queries, cut="output"),
        PartSpec(name="gate_projection", kind="projection", in_features=2 * rank, out_features=values, cut="output"),
        PartSpec(name="attention_gate", kind="gate", in_features=values, cut="heads"),
    ]
    for block in ("attention", "mlp") if layer.moe is not None else ("attention",):
        parts += [
            PartSpec(
                name=f"{block}_norm_down", kind="projection", block=block, in_features=hidden, out_features=narrow
            ),
            PartSpec(name=f"{block}_norm_up", kind="projection", block=block, in_features=narrow, out_features=hidden),
            PartSpec(name=f"{block}_norm_gate", kind="gate", block=block, in_features=hidden),
        ]
    return tuple(parts)


_SLIDING_SIZES = {
    "num_attention_heads": 64,
    "q_lora_rank": 1024,
    "kv_lora_rank": 1024,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
"""Of the sliding layers of dots3_note, where neither ``per_layer_config`` nor ``swa_`` keys say otherwise."""


def dots3_layers(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Sliding layers with sizes of their own and no indexer; the others choose tokens, or see all of them."""
    words = keys.reader.strings("layer_types")
    if words is None or len(words) != len(layers):
        words = ["indexed_attention" if i < 2 or i % 4 == 1 else _SLIDING for i in range(len(layers))]
    window = keys.reader.integer("sliding_window", "sliding_window_size", default=512)
    listed = keys.reader.data.get("per_layer_config")
    sizes = keys.reader.child("per_layer_config") if isinstance(listed, dict) else None
    found = []
    shared = keys.optional("n_shared_experts", minimum=0) or 0
    for index, (given, word) in enumerate(zip(layers, words, strict=True)):
        layer = given
        if word == _SLIDING:
            layer = changed(given, **_sliding_sizes(keys, sizes, index), sliding_window=window, indexer=None)
        elif word == "full_attention":
            layer = changed(given, indexer=None)
        rope = layer.attention.qk_rope_head_dim or 1
        norm = PartSpec(name="rotated_key_norm", kind="norm", in_features=rope)
        moe = layer.moe
        if moe is not None:
            width = moe.shared_intermediate_size * shared
            moe = moe.model_copy(update={"shared_intermediate_size": width})
        found.append(layer.model_copy(update={"parts": (norm,), "moe": moe}))
    return found


def _sliding_sizes(keys: ClassKeys, sizes: ConfigReader | None, index: int) -> dict[str, int]:
    """Fields of the attention of one sliding layer."""
    names = [f"{index:02d}", f"{index:03d}", str(index)]
    own = next((name for name in names if sizes is not None and name in sizes.data), None)
    child = sizes.child(own) if sizes is not None and own is not None else None
    read = {
        name: child.integer(name, default=keys.integer(name))
        if child is not None
        else keys.reader.integer(f"swa_{name}", default=default)
        for name, default in _SLIDING_SIZES.items()
    }
    rope = read["qk_rope_head_dim"]
    return {
        "num_heads": read["num_attention_heads"],
        "num_kv_heads": read["num_attention_heads"],
        "q_lora_rank": read["q_lora_rank"],
        "kv_lora_rank": read["kv_lora_rank"],
        "head_dim": read["qk_nope_head_dim"] + rope,
        "v_head_dim": read["v_head_dim"],
        "qk_rope_head_dim": rope,
    }


def block_sparse(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Layers whose indexer chooses blocks of tokens (minimax_m3_vl): keys and queries normed, no weights."""
    heads, width = keys.integer("index_n_heads"), keys.integer("index_head_dim")
    block, blocks = keys.integer("index_block_size"), keys.integer("index_topk_blocks")
    words = keys.reader.strings("layer_types")
    if isinstance(keys.reader.data.get("sparse_attention_config"), dict):
        old = keys.reader.child("sparse_attention_config")
        heads = old.integer("sparse_num_index_heads", default=heads)
        width = old.integer("sparse_index_dim", default=width)
        block = old.integer("sparse_block_size", default=block)
        blocks = old.integer("sparse_topk_blocks", default=blocks)
        flags = old.integers("sparse_attention_freq", [])
        if words is None and flags:
            words = ["minimax_m3_sparse" if flag else "full_attention" for flag in flags]
    words = words if words is not None else ["full_attention"] * len(layers)
    for word in sorted(set(words) - {"full_attention", "minimax_m3_sparse"}):
        keys.reader.refuse("layer_types", f"holds {word[:40]!r}; full_attention and minimax_m3_sparse are read")
    if len(words) != len(layers):
        keys.reader.refuse("layer_types", f"must hold one entry a layer ({len(layers)}), holds {len(words)}")
        return layers
    indexer = IndexerSpec(
        num_heads=heads,
        head_dim=width,
        top_k=block * blocks,
        reads_query_latent=False,
        weighted=False,
        rms_norms=True,
    )
    sparse = [word == "minimax_m3_sparse" for word in words]
    return [changed(layer, indexer=indexer) if each else layer for layer, each in zip(layers, sparse, strict=True)]


def qwen_sparse(keys: ClassKeys, _: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Attention to the blocks whose mean keys score best (qwen4_exp); n-gram tables are refused."""
    if keys.reader.integers("ple_layer_ids", []):
        keys.reader.refuse("ple_layer_ids", "asks for n-gram embeddings in the layers, which are not modelled")
    for key in ("ple_embed_dim", "ngram_vocab_size_base"):
        keys.optional(key, minimum=0)
    keys.optional("indexer_kv_heads")
    indexer = IndexerSpec(
        num_heads=keys.integer("indexer_n_heads"),
        head_dim=keys.integer("indexer_head_dim"),
        top_k=keys.integer("indexer_budget"),
        reads_query_latent=False,
        weighted=False,
        rms_norms=True,
        pooled=keys.integer("indexer_compress_ratio"),
    )
    attentions = [isinstance(layer.attention, AttentionSpec) for layer in layers]
    return [changed(layer, indexer=indexer) if each else layer for layer, each in zip(layers, attentions, strict=True)]
