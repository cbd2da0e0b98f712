"""ProphetNet: an encoder-decoder whose decoder predicts several further tokens, each in a stream of its own.

Shapes: ``transformers`` 5.23 modeling_prophetnet.py.
"""

from __future__ import annotations

from planner.model.ends import AddedTable
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layers import divided_heads
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.stacks import EncoderStack, apart, joined, layer_count
from planner.model.layer_parts import PartSpec
from planner.model.layer_rows import RowsSpec
from planner.model.mixers.cross import CrossAttentionSpec
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec


def import_prophetnet(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a ProphetNet: beside the main stream one for each of ``ngram`` tokens, from which the head predicts."""
    keys = ClassKeys(reader, "prophetnet")
    hidden, positions, ngram = (
        keys.width("hidden_size"),
        keys.integer("max_position_embeddings"),
        keys.integer("ngram"),
    )
    if not keys.on("add_cross_attention"):
        reader.refuse("add_cross_attention", "must be true: the decoder stands behind an encoder")
    keys.on("disable_ngram_loss")  # changes what the loss counts, not what is computed
    vocabulary, tied = keys.integer("vocab_size"), keys.on("tie_word_embeddings")
    own = [] if tied else [apart("source_token", vocabulary, hidden)]
    held = [] if tied else [apart("shared_token", vocabulary, hidden, looked_up=False)]
    model = joined(
        EncoderStack(
            _layers(keys, "encoder", hidden),
            "layer",
            hidden,
            [*own, AddedTable(name="source_position", rows=positions, width=hidden)],
            embedding_norm=True,
            final_norm=False,
        ),
        _layers(keys, "decoder", hidden, ngram),
        [*held, AddedTable(name="stream", rows=ngram, width=hidden)],
        name=name,
        family="prophetnet",
        hidden_size=hidden,
        vocab_size=vocabulary,
        tie_embeddings=tied,
        learned_positions=positions,
        embedding_norm=True,
        final_norm=False,
        max_sequence_length=positions,
        activation_function=keys.text("activation_function", "gelu"),
        position="learned",
    )
    assert model.ends is not None
    return model.model_copy(update={"ends": model.ends.model_copy(update={"head_streams": ngram})})


def _layers(keys: ClassKeys, side: str, hidden: int, ngram: int = 0) -> list[LayerSpec]:
    heads, decoder = keys.integer(f"num_{side}_attention_heads"), side == "decoder"
    head_dim = divided_heads(keys.reader, f"num_{side}_attention_heads", hidden, heads)
    cross = CrossAttentionSpec(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=head_dim,
        source_width=hidden,
        query_bias=True,
        key_bias=True,
        value_bias=True,
        output_bias=True,
    )
    distances = PartSpec(
        name="distance_biases",
        kind="projection",
        in_features=hidden,
        out_features=keys.integer("num_buckets") * heads,
        bias=True,
        cut="output",
    )
    layer = LayerSpec(
        attention=AttentionSpec(
            num_heads=heads,
            num_kv_heads=heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            qkv_bias=True,
            output_bias=True,
            causal=decoder,
        ),
        cross=cross if decoder else None,
        mlp=MlpSpec(intermediate_size=keys.width(f"{side}_ffn_dim"), gated=False, bias=True),
        norm="layer",
        num_norms=3 if decoder else 2,
        norm_placement="post_residual",
        parts=(distances,) if decoder else (),
        rows=RowsSpec(streams=1 + ngram) if decoder else None,
    )
    return [layer] * layer_count(keys, f"num_{side}_layers")
