"""Encoder-decoders of the BART kind, by a table: ``model_type`` -> ``Bart``.

Layer norms, plain MLPs and biases as in the first Transformer; families differ in where norms stand, in their tables of
positions and in which token tables are one.  Shapes: ``transformers`` 5.23 modeling files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.model.encoder import ConvFront
from planner.model.ends import AddedTable
from planner.model.hf_config.bert_family import block_sparse_window
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layers import divided_heads
from planner.model.hf_config.long_encoders import global_table, longformer, with_global_tokens
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.stacks import EncoderStack, apart, joined, layer_count
from planner.model.mixers.cross import CrossAttentionSpec
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec, MoeSpec


@dataclass(frozen=True, slots=True)
class Bart:
    """What one family has beyond a BART."""

    positions: int | None = 2
    """Rows of the tables of positions beyond the longest sequence; None = no such tables."""
    pre_norm: bool = False
    """Norms before the branches, and one behind each stack."""
    closing_norm: bool | None = None
    """A norm behind each stack, where it does not follow from ``pre_norm``."""
    embedding_norm: bool = True
    bias: bool | str = True
    """Biases of attention."""
    block_sparse: bool = False
    routed: bool = False
    two_vocabularies: bool = False
    """fsmt: ``src_vocab_size``, ``tgt_vocab_size``, and no third table."""
    may_part: bool = False
    """marian: ``share_encoder_decoder_embeddings`` parts the vocabularies."""
    refused: tuple[tuple[str, str], ...] = ()
    hidden: str = "d_model"
    lengths: tuple[str, str] = ("max_position_embeddings", "max_position_embeddings")
    """Keys of the longest source and the longest target."""
    encoder: Callable[[ClassKeys, list[LayerSpec]], list[LayerSpec]] | None = None
    """What the layers of the encoder have instead of plain attention."""
    source_tables: Callable[[ClassKeys, int], list[AddedTable]] | None = None


_PRE = Bart(positions=0, pre_norm=True, embedding_norm=False)

BARTS: dict[str, Bart] = {
    "bart": Bart(),
    "bigbird_pegasus": Bart(positions=0, pre_norm=True, embedding_norm=False, bias="use_bias", block_sparse=True),
    "blenderbot": _PRE,
    "blenderbot-small": Bart(positions=0),
    "fsmt": Bart(embedding_norm=False, two_vocabularies=True),
    "led": Bart(
        positions=0, lengths=("max_encoder_position_embeddings", "max_decoder_position_embeddings"), encoder=longformer
    ),
    "m2m_100": replace(_PRE, positions=None),
    "marian": Bart(positions=0, embedding_norm=False, may_part=True),
    "mbart": Bart(pre_norm=True),
    "mvp": Bart(refused=(("use_prompt", "prompts of every layer"),)),
    "nllb-moe": replace(_PRE, positions=None, routed=True),
    "pegasus": _PRE,
    "pegasus_x": replace(_PRE, positions=None, bias=False, encoder=with_global_tokens, source_tables=global_table),
    "plbart": Bart(),
    **dict.fromkeys(("seamless_m4t", "seamless_m4t_v2"), replace(_PRE, positions=None, hidden="hidden_size")),
}


def import_bart(reader: ConfigReader, name: str, family: str) -> ModelSpec:
    """Read an encoder-decoder of the BART kind."""
    table, keys = BARTS[family], ClassKeys(reader, family)
    for key, mechanism in table.refused:
        if keys.on(key):
            reader.refuse(key, f"asks for {mechanism}, which is not modelled")
    hidden = keys.width(table.hidden)
    source, length = (keys.integer(key) for key in table.lengths)
    vocabulary, tied, tables, held = _token_tables(keys, table, hidden)
    source_rows, rows = (0 if table.positions is None else each + table.positions for each in (source, length))
    if family == "fsmt":  # the table starts behind the padding token
        source_rows = rows = length + reader.integer("pad_token_id", default=1, minimum=0) + 1
    places = [AddedTable(name="source_position", rows=source_rows, width=hidden)] if source_rows else []
    places += table.source_tables(keys, hidden) if table.source_tables else []
    closing = table.pre_norm if table.closing_norm is None else table.closing_norm
    encoder = stack(keys, table, "encoder", hidden)
    return joined(
        EncoderStack(
            table.encoder(keys, encoder) if table.encoder else encoder,
            "layer",
            hidden,
            [*tables, *places],
            embedding_norm=table.embedding_norm,
            final_norm=closing,
        ),
        stack(keys, table, "decoder", hidden),
        held,
        name=name,
        family=family,
        hidden_size=hidden,
        vocab_size=vocabulary,
        tie_embeddings=tied,
        learned_positions=rows,
        embedding_norm=table.embedding_norm,
        final_norm=closing,
        max_sequence_length=length,
        activation_function=keys.text("activation_function", "gelu"),
        position="learned" if rows else "none",
    )


def _token_tables(keys: ClassKeys, table: Bart, width: int) -> tuple[int, bool, list[AddedTable], list[AddedTable]]:
    """The decoder's vocabulary, whether its head is tied, the encoder's own token table, and a table that is held."""
    tied = keys.on("tie_word_embeddings")
    if table.two_vocabularies:
        source, target = keys.integer("src_vocab_size"), keys.integer("tgt_vocab_size")
        if tied and source != target:
            keys.reader.refuse("src_vocab_size", f"must be tgt_vocab_size = {target} where tables are tied")
        return target, tied, [] if tied else [apart("source_token", source, width)], []
    vocabulary = keys.integer("vocab_size")
    if table.may_part and not keys.on("share_encoder_decoder_embeddings"):
        target = keys.optional("decoder_vocab_size") or vocabulary
        return target, tied, [apart("source_token", vocabulary, width)], []
    if table.may_part:
        keys.optional("decoder_vocab_size")
    if tied:
        return vocabulary, True, [], []
    return (
        vocabulary,
        False,
        [apart("source_token", vocabulary, width)],
        [apart("shared_token", vocabulary, width, looked_up=False)],
    )


def stack(keys: ClassKeys, table: Bart, side: str, hidden: int, *, key_bias: bool = True) -> list[LayerSpec]:
    """The layers of one side, ``encoder`` or ``decoder``."""
    decoder, heads = side == "decoder", keys.integer(f"{side}_attention_heads")
    head_dim = divided_heads(keys.reader, f"{side}_attention_heads", hidden, heads)
    bias, count = keys.on(table.bias), layer_count(keys, f"{side}_layers")
    width = keys.width(f"{side}_ffn_dim")
    cross = CrossAttentionSpec(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=head_dim,
        source_width=hidden,
        query_bias=bias,
        key_bias=bias and key_bias,
        value_bias=bias,
        output_bias=bias,
    )
    layer = LayerSpec(
        attention=AttentionSpec(
            num_heads=heads,
            num_kv_heads=heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            qkv_bias=bias,
            output_bias=bias,
            causal=decoder,
            key_bias=key_bias or not bias,
            sliding_window=block_sparse_window(keys) if table.block_sparse and not decoder else None,
        ),
        cross=cross if decoder else None,
        mlp=MlpSpec(intermediate_size=width, gated=False, bias=True),
        norm="layer",
        num_norms=3 if decoder else 2,
        norm_placement="pre" if table.pre_norm else "post_residual",
    )
    if not table.routed:
        return [layer] * count
    step = keys.integer(f"{side}_sparse_step", minimum=0)
    routes = layer.model_copy(update={"mlp": None, "moe": _experts(keys, width)})
    return [routes if step and (index + 1) % step == 0 else layer for index in range(count)]


def _experts(keys: ClassKeys, width: int) -> MoeSpec:
    """Two experts a token (arXiv 2207.04672, section 6.1)."""
    count = keys.integer("num_experts")
    return MoeSpec(
        num_experts=count,
        top_k=min(2, count),
        expert_intermediate_size=width,
        gated=False,
        expert_bias=True,
        router_bias=keys.on("router_bias"),
    )


def import_whisper(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a Whisper: two convolutions over a spectrum, then an encoder-decoder of the BART kind without key biases."""
    keys, table = ClassKeys(reader, "whisper"), _PRE
    hidden, tokens = keys.width("d_model"), keys.integer("max_source_positions")
    length = keys.integer("max_target_positions")
    return joined(
        EncoderStack(
            stack(keys, table, "encoder", hidden, key_bias=False),
            "layer",
            hidden,
            [AddedTable(name="source_position", rows=tokens, width=hidden)],
            front=ConvFront(input_width=keys.integer("num_mel_bins")),
            sequence_length=tokens,
        ),
        stack(keys, table, "decoder", hidden, key_bias=False),
        [],
        name=name,
        family="whisper",
        hidden_size=hidden,
        vocab_size=keys.integer("vocab_size"),
        tie_embeddings=keys.on("tie_word_embeddings"),
        learned_positions=length,
        max_sequence_length=length,
        activation_function=keys.text("activation_function", "gelu"),
        position="learned",
    )
