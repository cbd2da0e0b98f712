"""Mixers of single recurrent families, and shared transformer blocks: rules that the tables of families name.

Shapes: ``transformers`` 5.23 modeling files of recurrent_gemma, rwkv, xlstm, jetmoe, zamba, zamba2, cpmant.
"""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.mixer_rules import read_mamba2
from planner.model.hf_config.sparse_forms import Ends
from planner.model.mixers.channel_recurrence import ChannelRecurrenceSpec
from planner.model.mixers.expert_attention import ExpertAttentionSpec
from planner.model.mixers.mamba import Mamba1Spec
from planner.model.mixers.mlstm import MlstmSpec
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, PartSpec, TokenMixer

_WORDS = {"recurrent": True, "attention": False}


def griffin_mixers(keys: ClassKeys, num_layers: int, hidden: int) -> list[TokenMixer | None]:
    """RG-LRU and attention in the order of ``block_types``, over and over."""
    words = keys.reader.strings("block_types") or ["recurrent", "recurrent", "attention"]
    for word in sorted(set(words) - set(_WORDS)):
        keys.reader.refuse("block_types", f"holds {word[:40]!r}; recurrent and attention are read")
    width, heads = keys.optional("lru_width") or hidden, keys.integer("num_attention_heads")
    if width % heads:
        keys.reader.refuse("lru_width", f"must be a multiple of {heads} heads, is {width}")
        heads = 1
    kernel = keys.integer("conv1d_width")
    mixer = ChannelRecurrenceSpec(kind="rg_lru", width=width, num_heads=heads, conv_kernel=kernel)
    return [mixer if _WORDS.get(words[layer % len(words)], True) else None for layer in range(num_layers)]


def griffin_windows(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """All attention slides."""
    return [keys.integer("attention_window_size")] * num_layers


def half_width(keys: ClassKeys) -> int:
    """Half of ``intermediate_size``, which counts both input projections."""
    return max(keys.width("intermediate_size") // 2, 1)


def wkv_mixers(keys: ClassKeys, num_layers: int, hidden: int) -> list[TokenMixer | None]:
    """RWKV-4's recurrence in every layer."""
    width = keys.optional("attention_hidden_size") or hidden
    return [ChannelRecurrenceSpec(kind="wkv", width=width, num_heads=width)] * num_layers


def channel_mix(_: ClassKeys, hidden: int, __: LayerSpec, ___: int) -> tuple[PartSpec, ...]:
    """RWKV's MLP mixes a token with the one before and has a gate from the input."""
    return (
        PartSpec(name="mlp_token_shift", kind="scale", block="mlp", in_features=hidden, learned=2 * hidden),
        PartSpec(name="mlp_receptance", kind="projection", block="mlp", in_features=hidden),
        PartSpec(name="mlp_gate", kind="gate", block="mlp", in_features=hidden),
    )


def mlstm_mixers(keys: ClassKeys, num_layers: int, hidden: int) -> list[TokenMixer | None]:
    """The matrix memory of xLSTM in every layer."""
    heads = keys.integer("num_heads")
    mixer = MlstmSpec(
        num_heads=heads,
        qk_size=max(int(hidden * keys.number("qk_dim_factor", 0.5)), 1),
        v_size=max(int(hidden * keys.number("v_dim_factor", 1.0)), 1),
        chunk_size=keys.integer("chunk_size"),
    )
    return [mixer] * num_layers


def xlstm_width(keys: ClassKeys) -> int:
    """A multiple of the hidden width, rounded up."""
    multiple = keys.integer("ffn_round_up_to_multiple_of")
    wanted = keys.width("hidden_size") * keys.number("ffn_proj_factor", 2.667)
    return int((wanted + multiple - 1) // multiple * multiple)


def expert_attention(keys: ClassKeys, num_layers: int, _: int) -> list[TokenMixer | None]:
    """Attention made of experts in every layer."""
    count, top_k = keys.integer("num_local_experts"), keys.integer("num_experts_per_tok")
    mixer = ExpertAttentionSpec(
        num_kv_heads=keys.integer("num_key_value_heads"),
        head_dim=keys.integer("kv_channels"),
        num_experts=count,
        top_k=min(top_k, count),
    )
    return [mixer] * num_layers


def experts_bias(_: ClassKeys, hidden: int, __: LayerSpec, ___: int) -> tuple[PartSpec, ...]:
    """A constant on the output of the experts (jetmoe)."""
    return (PartSpec(name="experts_bias", kind="scale", block="mlp", in_features=hidden),)


def zamba2_mixers(keys: ClassKeys, num_layers: int, hidden: int) -> list[TokenMixer | None]:
    """Mamba-2 in every layer."""
    names = ("n_mamba_heads", "mamba_headdim", "mamba_d_state", "mamba_ngroups", "mamba_d_conv", "chunk_size")
    biases = ("use_conv_bias", "add_bias_linear", "add_bias_linear")
    mixer = read_mamba2(keys, keys.integer("mamba_expand") * hidden, names=names, biases=biases)
    # The class has a bias on the convolution whatever the key says.
    return [mixer.model_copy(update={"conv_bias": True})] * num_layers


def zamba_mixers(keys: ClassKeys, num_layers: int, hidden: int) -> list[TokenMixer | None]:
    """Mamba-1 in every layer; its heads split the channels and change no size."""
    rank = keys.optional("mamba_dt_rank") if keys.reader.data.get("mamba_dt_rank") != "auto" else None
    if rank is None:
        keys.text("mamba_dt_rank", "auto")
    mixer = Mamba1Spec(
        inner_size=keys.integer("mamba_expand") * hidden,
        state_size=keys.integer("mamba_d_state"),
        time_step_rank=rank or -(-hidden // 16),
        conv_kernel=keys.integer("mamba_d_conv"),
        conv_bias=keys.on("mamba_conv_bias"),
        projection_bias=keys.on("mamba_proj_bias"),
    )
    return [mixer] * num_layers


def _hybrid(keys: ClassKeys, num_layers: int, default: list[bool]) -> list[bool]:
    names = keys.reader.strings("layers_block_type")
    if names is None:
        return default
    for name in sorted(set(names) - {"hybrid", "mamba", "linear_attention"}):
        keys.reader.refuse("layers_block_type", f"holds {name[:40]!r}; hybrid, mamba and linear_attention are read")
    if len(names) < num_layers:
        keys.reader.refuse("layers_block_type", f"must hold one entry a layer ({num_layers}), holds {len(names)}")
        return default
    return [name == "hybrid" for name in names[:num_layers]]


def _shared_block(keys: ClassKeys, hidden: int, *, bias: bool) -> LayerSpec:
    """Attention over the layer's input and the embedding side by side, and an MLP."""
    heads = keys.integer("num_attention_heads")
    kv_heads = keys.optional("num_key_value_heads") or heads
    if heads % kv_heads:
        keys.reader.refuse("num_key_value_heads", f"must divide {heads} heads, is {kv_heads}")
        kv_heads = heads
    wide = keys.reader.optional_integer("attention_hidden_size", default=2 * hidden) or 2 * hidden
    given = keys.reader.optional_integer("attention_head_dim", "head_dim", default=2 * hidden // heads)
    width = given or 2 * hidden // heads
    attention = AttentionSpec(num_heads=heads, num_kv_heads=kv_heads, head_dim=width, v_head_dim=width, input_size=wide)
    mlp = MlpSpec(intermediate_size=keys.optional("intermediate_size") or 4 * hidden, gated=True, bias=bias)
    norm = PartSpec(name="embedding_side_norm", kind="norm", in_features=hidden)
    return LayerSpec(attention=attention, mlp=mlp, parts=(norm,))


def zamba2_blocks(keys: ClassKeys, hidden: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Before a hybrid layer's Mamba-2 runs one of ``num_mem_blocks`` shared blocks, with adapters of its own."""
    if not keys.on("tie_word_embeddings"):
        keys.reader.refuse("tie_word_embeddings", "must be true: the class ties its shared blocks by the same key")
    default = [index == 6 or (index > 6 and index % 6 == 0 and index < 43) for index in range(len(layers))]
    default = [each or index in (47, 51) for index, each in enumerate(default)]
    block = _shared_block(keys, hidden, bias=keys.on("add_bias_linear"))
    rank, wide = keys.integer("adapter_rank"), 2 * hidden
    assert block.mlp is not None
    sizes = [("mlp", hidden, 2 * block.mlp.intermediate_size)]
    if keys.on("use_shared_attention_adapter"):
        sizes += [(name, wide, wide) for name in ("query", "key", "value")]
    adapters = [
        part
        for name, read, written in sizes
        for part in (
            PartSpec(name=f"{name}_adapter_down", kind="projection", in_features=read, out_features=rank),
            PartSpec(name=f"{name}_adapter_up", kind="projection", in_features=rank, out_features=written),
        )
    ]
    return _with_shared(
        _hybrid(keys, len(layers), default), layers, block, keys.integer("num_mem_blocks"), hidden, adapters
    )


def zamba_blocks(keys: ClassKeys, hidden: int, layers: list[LayerSpec]) -> list[LayerSpec]:
    """Before a hybrid layer's Mamba the one shared block runs."""
    period, offset = keys.integer("attn_layer_period"), keys.integer("attn_layer_offset", minimum=0)
    default = [index == 2 or (index > 2 and (index - 3) % period == offset) for index in range(len(layers))]
    block = _shared_block(keys, hidden, bias=False)
    # The class ties the copies of the block by the list of tied weights, which this key switches off.
    blocks = 1 if keys.on("tie_word_embeddings") else len(layers)
    return _with_shared(_hybrid(keys, len(layers), default), layers, block, blocks, hidden, [])


def _with_shared(
    hybrid: list[bool], layers: list[LayerSpec], block: LayerSpec, blocks: int, hidden: int, adapters: list[PartSpec]
) -> list[LayerSpec]:
    again, found, used = block.model_copy(update={"reuses_weights": True}), [], 0
    joined = PartSpec(name="shared_block_projection", kind="projection", in_features=hidden)
    for layer, shared in zip(layers, hybrid, strict=True):
        if shared:
            found.append(block if used < blocks else again)
            used += 1
        found.append(layer.model_copy(update={"parts": (joined, *adapters)}) if shared else layer)
    return found


def cpmant_tables(keys: ClassKeys, hidden: int) -> Ends:
    """Rows of prompts, segments and relative positions."""
    heads, segments = keys.integer("num_attention_heads"), keys.integer("segment_types")
    prompts = keys.integer("prompt_types", minimum=0) * keys.integer("prompt_length", minimum=0)
    places = keys.integer("position_bias_num_buckets") + segments * segments
    return (
        PartSpec(name="prompt_table", kind="table", in_features=hidden, learned=prompts * hidden),
        PartSpec(name="segment_table", kind="table", in_features=hidden, learned=segments * hidden),
        PartSpec(name="position_bias", kind="table", in_features=heads, learned=places * heads),
    ), ()
