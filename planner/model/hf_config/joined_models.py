"""An encoder and a decoder of two classes in one model: ``encoder-decoder``, ``vision-encoder-decoder``, TrOCR.

Shapes: ``transformers`` 5.23 modeling_encoder_decoder.py, modeling_vision_encoder_decoder.py, modeling_trocr.py.
"""

from __future__ import annotations

from typing import Any

from planner.model.encoder import EncoderSpec, PatchFront
from planner.model.ends import AddedTable
from planner.model.hf_config.bart_family import Bart, stack
from planner.model.hf_config.bert_family import import_bert
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layers import divided_heads
from planner.model.hf_config.patch_towers import side
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.stacks import apart, layer_count
from planner.model.hf_config.vision_towers import vision_layer
from planner.model.layer_parts import PartSpec
from planner.model.layer_runs import runs_of
from planner.model.mixers.cross import CrossAttentionSpec
from planner.model.norm_operators import norm_parameters
from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, ModelSpec

_POOLED = ("bert", "camembert", "data2vec-text", "megatron-bert", "roberta", "roberta-prelayernorm", "xlm-roberta")
"""Encoders whose class holds a projection of the first token, which the decoder does not read."""
_PLAIN = (*_POOLED, "bert-generation")
_DECODER = {"model_type": "bert", "is_decoder": True, "add_cross_attention": True}
"""What the class makes where the config has no decoder."""


def import_encoder_decoder(reader: ConfigReader, name: str) -> ModelSpec:
    """Read an encoder of the BERT kind beside a decoder of the BERT kind, each with tables of its own."""
    held = reader.child("encoder", {"model_type": "bert"})
    kind = _kind(held, "bert", _PLAIN)
    model = import_bert(held, name, kind)
    width = model.hidden_size
    tables = [apart("source_token", model.vocab_size, width)]
    if model.learned_positions:
        tables.append(AddedTable(name="source_position", rows=model.learned_positions, width=width))
    further = model.ends.tables if model.ends else ()
    tables += [
        table.model_copy(update={"name": f"source_{table.name}"}) for table in further if table.name != "second_bias"
    ]
    if kind in _POOLED:
        tables.append(AddedTable(name="source_pooler", rows=width + 1, width=width, looked_up=False))
    encoder = EncoderSpec(
        num_layers=model.num_layers,
        num_kinds=len(model.layer_kinds),
        hidden_size=width,
        tables=tuple(tables),
        norm="layer",
        embedding_norm=model.embedding_norm,
        final_norm=model.final_norm,
    )
    return _behind(reader, name, encoder, model.layer_kinds, model.layer_runs)


def import_vision_encoder_decoder(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a ViT whose patches a decoder of the BERT kind, or TrOCR's, reads."""
    held = reader.child("encoder", {"model_type": "vit"})
    keys = ClassKeys(held, _kind(held, "vit", ("vit",)))
    width, heads, inner = (
        keys.width("hidden_size"),
        keys.integer("num_attention_heads"),
        keys.width("intermediate_size"),
    )
    divided_heads(held, "num_attention_heads", width, heads)
    patch, image = side(held, "patch_size", 16), side(held, "image_size", 224)
    if patch > image:
        held.refuse("patch_size", f"must not exceed the image size {image}, is {patch}")
    # The class takes the width of its layers where nothing is said.
    patches, pooled = max(image // patch, 1) ** 2, keys.optional("pooler_output_size") or width
    layer = vision_layer(width, heads, inner, gated=False, norm="layer")
    attention = layer.attention.model_copy(update={"qkv_bias": keys.on("qkv_bias")})
    tables = (
        AddedTable(name="class_token", rows=1, width=width, looked_up=False),
        AddedTable(name="source_position", rows=patches + 1, width=width),
        AddedTable(name="source_pooler", rows=width + 1, width=pooled, looked_up=False),
    )
    count = layer_count(keys, "num_hidden_layers")
    encoder = EncoderSpec(
        num_layers=count,
        num_kinds=1,
        hidden_size=width,
        tables=tables,
        front=PatchFront(input_width=keys.integer("num_channels") * patch * patch),
        norm="layer",
        sequence_length=patches + 1,
    )
    layers = (layer.model_copy(update={"attention": attention}),)
    return _behind(reader, name, encoder, layers, (LayerRun(kind=0, count=count),))


def import_trocr(reader: ConfigReader, name: str) -> ModelSpec:
    """Read TrOCR's decoder alone: its class holds the weights of cross-attention and runs without them."""
    model = _trocr(reader, name)
    width, source = model.hidden_size, ClassKeys(reader, "trocr").optional("cross_attention_hidden_size")
    held = (
        *(
            PartSpec(
                name=f"cross_{part}",
                kind="held",
                in_features=(source or width) if part in ("keys", "values") else width,
                out_features=width,
                bias=True,
            )
            for part in ("queries", "keys", "values", "output")
        ),
        PartSpec(name="cross_norm", kind="held", in_features=width, learned=norm_parameters(width, "layer")),
    )
    kinds = tuple(kind.model_copy(update={"cross": None, "num_norms": 2, "parts": held}) for kind in model.layer_kinds)
    return model.model_copy(update={"layer_kinds": kinds})


def _kind(held: ConfigReader, default: str, known: tuple[str, ...]) -> str:
    kind = held.text("model_type", default=default)
    if kind in known:
        return kind
    held.refuse("model_type", f"{kind[:40]!r} is not read in this place", f"read are {', '.join(known)}")
    return known[0]


def _behind(
    reader: ConfigReader,
    name: str,
    encoder: EncoderSpec,
    kinds: tuple[LayerSpec, ...],
    runs: tuple[LayerRun, ...],
) -> ModelSpec:
    """The encoder with the decoder that the config names."""
    held, width = reader.child("decoder", _DECODER), encoder.hidden_size or 1
    kind = _kind(held, "bert", (*_PLAIN, "trocr"))
    decoder = _trocr(held, name) if kind == "trocr" else import_bert(held, name, kind, crossed=True)
    said = held.optional_integer("cross_attention_hidden_size")
    if said is None and width != decoder.hidden_size:
        held.refuse("hidden_size", f"must be the encoder's {width}: a projection between the two is not modelled")
    elif said is not None and said != width:
        held.refuse("cross_attention_hidden_size", f"must be the encoder's hidden size {width}, is {said}")
    if not held.boolean("is_decoder", default=kind == "trocr"):
        held.refuse("is_decoder", "must be true behind an encoder")
    crossing = [_crossed(layer, width) for layer in decoder.layer_kinds]
    shifted = [run.model_copy(update={"kind": run.kind + len(kinds)}) for run in decoder.layer_runs]
    fields: dict[str, Any] = {field: getattr(decoder, field) for field in ModelSpec.model_fields}
    return ModelSpec(
        **fields
        | {
            "family": reader.text("model_type", default="encoder-decoder"),
            "encoder": encoder,
            "layer_kinds": (*kinds, *crossing),
            "layer_runs": (*runs, *shifted),
        }
    )


def _crossed(layer: LayerSpec, source_width: int) -> LayerSpec:
    """A decoder layer with attention to the encoder's output and a norm of its own for it."""
    attention = layer.attention
    assert isinstance(attention, AttentionSpec)
    cross = CrossAttentionSpec.beside(attention, source_width, bias=True)
    return layer.model_copy(update={"cross": cross, "num_norms": 3})


def _trocr(reader: ConfigReader, name: str) -> ModelSpec:
    """TrOCR's decoder, whose layers have cross-attention still to come."""
    keys = ClassKeys(reader, "trocr")
    hidden, length = keys.width("d_model"), keys.integer("max_position_embeddings")
    layers = [layer.model_copy(update={"cross": None}) for layer in stack(keys, Bart(), "decoder", hidden)]
    kinds, runs = runs_of(layers)
    learned = keys.on("use_learned_position_embeddings")
    return ModelSpec(
        name=name,
        family="trocr",
        hidden_size=hidden,
        vocab_size=keys.integer("vocab_size"),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=keys.on("tie_word_embeddings"),
        learned_positions=length + 2 if learned else 0,
        embedding_norm=keys.on("layernorm_embedding"),
        final_norm=False,
        max_sequence_length=length,
        activation_function=keys.text("activation_function", "gelu"),
        position="learned" if learned else "none",
    )
