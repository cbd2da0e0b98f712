"""Encoder-decoders of the T5 kind: biases by distance, RMS norms before the branches, no biases of matmuls.

Shapes: ``transformers`` 5.23 modeling files.  Its T5 classes tie all token tables and the head whatever the config
says; ``tie_word_embeddings`` tells them only how the head's input is scaled.
"""

from __future__ import annotations

from planner.model.ends import AddedTable
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layers import windowed
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.stacks import EncoderStack, apart, joined, layer_count
from planner.model.hf_config.udop_parts import udop_patches, udop_tables
from planner.model.mixers.cross import CrossAttentionSpec
from planner.model.mixers.local_global import LocalGlobalSpec
from planner.model.mixers.softmax import PositionBias
from planner.model.spec import UNBOUNDED, AttentionSpec, LayerSpec, MlpSpec, ModelSpec, MoeSpec

T5S = ("t5", "mt5", "umt5", "switch_transformers", "longt5", "udop")
_EVERY_LAYER = frozenset({"umt5"})
"""Families whose layers each have a table of biases; in the others the first layer's serves all."""


def import_t5(reader: ConfigReader, name: str, family: str) -> ModelSpec:
    """Read a T5, mT5, UMT5 or Switch Transformer."""
    keys = ClassKeys(reader, family)
    hidden, vocabulary = keys.width("d_model"), keys.integer("vocab_size")
    gated, activation = _activation(keys, family)
    mlp = MlpSpec(intermediate_size=keys.width("d_ff"), gated=gated)
    encoder_count = layer_count(keys, "num_layers")
    decoder_count = encoder_count
    if keys.optional("num_decoder_layers") is not None:
        decoder_count = layer_count(keys, "num_decoder_layers")
    moe = _switch(keys) if family == "switch_transformers" else None
    encoder, decoder = (
        _layers(keys, family, mlp, moe, decoder=decoder, count=count)
        for decoder, count in ((False, encoder_count), (True, decoder_count))
    )
    if family == "longt5":
        encoder = [_local(keys, layer) for layer in encoder]
    tied = keys.on("tie_word_embeddings") or moe is None
    tables = [] if tied else [apart("source_token", vocabulary, hidden)]
    held: list[AddedTable] = [] if tied else [apart("shared_token", vocabulary, hidden, looked_up=False)]
    if family == "udop":
        tables, held = udop_tables(keys, hidden)
    model = joined(
        EncoderStack(encoder, "rms", hidden, tables),
        decoder,
        held,
        name=name,
        family=family,
        hidden_size=hidden,
        vocab_size=vocabulary,
        tie_embeddings=tied,
        max_sequence_length=UNBOUNDED,
        activation_function=activation,
        position="none",
        norm_epsilon=keys.number("layer_norm_epsilon", 1e-6),
    )
    return model.model_copy(update={"vision": udop_patches(keys, encoder[0], hidden)}) if family == "udop" else model


def _activation(keys: ClassKeys, family: str) -> tuple[bool, str]:
    """Whether the MLP is gated, and its activation: ``gated-gelu``, ``relu``; gated-gelu is the tanh form."""
    if family == "switch_transformers":
        return False, keys.text("dense_act_fn", "relu")
    said = keys.text("feed_forward_proj", "relu")
    kind, _, function = said.rpartition("-")
    if kind not in ("", "gated"):
        keys.reader.refuse("feed_forward_proj", f"must be an activation or gated-ACTIVATION, is {said[:40]!r}")
    # What the class derives of it is in the file too, and goes before.
    gated = keys.reader.boolean("is_gated_act", default=kind == "gated")
    return gated, keys.reader.text("dense_act_fn", default="gelu_new" if said == "gated-gelu" else function)


def _layers(
    keys: ClassKeys, family: str, mlp: MlpSpec, moe: MoeSpec | None, *, decoder: bool, count: int
) -> list[LayerSpec]:
    heads, head_dim, buckets = keys.integer("num_heads"), keys.integer("d_kv"), _buckets(keys)
    side = "decoder" if decoder else "encoder"
    routed = _routed(keys, side, count) if moe else [False] * count
    cross = CrossAttentionSpec(
        num_heads=heads, num_kv_heads=heads, head_dim=head_dim, source_width=keys.width("d_model")
    )
    return [
        LayerSpec(
            attention=AttentionSpec(
                num_heads=heads,
                num_kv_heads=heads,
                head_dim=head_dim,
                v_head_dim=head_dim,
                causal=decoder,
                position_bias=_bias(family, buckets, index, count),
            ),
            cross=cross if decoder else None,
            mlp=None if routes else mlp,
            moe=moe if routes else None,
            num_norms=3 if decoder else 2,
        )
        for index, routes in enumerate(routed)
    ]


def _local(keys: ClassKeys, layer: LayerSpec) -> LayerSpec:
    """Attention of a block to itself and the two beside it, alone or with summaries of blocks (LongT5)."""
    kind, window = keys.text("encoder_attention_type", "local"), 3 * (keys.integer("local_radius") + 1)
    block = keys.integer("global_block_size")
    assert isinstance(layer.attention, AttentionSpec)
    if kind == "local":
        return layer.model_copy(update={"attention": windowed(layer.attention, window)})
    if kind != "transient-global":
        keys.reader.refuse("encoder_attention_type", f"must be local or transient-global, is {kind[:40]!r}")
    mixer = LocalGlobalSpec(
        num_heads=layer.attention.num_heads,
        head_dim=layer.attention.head_dim,
        window=window,
        summary_block=block,
        position_bias=layer.attention.position_bias,
    )
    return layer.model_copy(update={"attention": mixer})


def _bias(family: str, buckets: int, index: int, count: int) -> PositionBias:
    """Every layer's own table, or the first layer's for all."""
    if family in _EVERY_LAYER:
        return PositionBias(buckets=buckets)
    return PositionBias(buckets=buckets, shared=index > 0, serves=index == 0 and count > 1)


def _buckets(keys: ClassKeys) -> int:
    return keys.integer("relative_attention_num_buckets")


def _switch(keys: ClassKeys) -> MoeSpec:
    """One expert a token (arXiv 2101.03961, section 2.1); tokens beyond an expert's capacity are dropped."""
    return MoeSpec(
        num_experts=keys.integer("num_experts"),
        top_k=1,
        expert_intermediate_size=keys.width("d_ff"),
        gated=False,
        router_bias=keys.on("router_bias"),
    )


def _routed(keys: ClassKeys, side: str, count: int) -> list[bool]:
    """The second layer of each step routes; the step is given, or the layers over the number of those that route."""
    sparse = keys.integer(f"num_sparse_{side}_layers", minimum=0)
    step = keys.reader.integer(f"{side}_sparse_step", default=count // sparse if sparse else count, minimum=0)
    if step == 0:
        return [False] * count
    return [step == 1 or layer % step == 1 for layer in range(count)]
