"""Decoders with layers of cross-attention to a vision tower: mllama (Llama 3.2 Vision), idefics, blip, pp_formulanet.

Shapes: ``transformers`` 5.23 modeling files.
"""

from __future__ import annotations

import math
from typing import Any

from planner.model.hf_config.bart_family import Bart, stack
from planner.model.hf_config.bert_family import Bert, import_bert, second_bias
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder import Decoder
from planner.model.hf_config.decoder_reading import import_decoder
from planner.model.hf_config.image_models import Images
from planner.model.hf_config.image_parts import linear
from planner.model.hf_config.layers import divided_heads
from planner.model.hf_config.patch_towers import side
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.sam_towers import read_sam
from planner.model.hf_config.vision_towers import vision_layer
from planner.model.layer_runs import runs_of
from planner.model.mixers.tower_cross import TowerCrossSpec
from planner.model.spec import LayerSpec, ModelSpec, TokenMixer, VisionSpec

MLLAMA_ROWS = 8
"""Rows of mllama's token table behind the vocabulary."""
MLLAMA_CROSSED = [3, 8, 13, 18, 23, 28, 33, 38]
MLLAMA_RATIOS = 8
"""Shapes of an image in tiles where the config lists none."""
MLLAMA_FEATURES = [3, 7, 15, 23, 30]
TILE_MULTIPLE = 8
FORMULA_PARTS = ("pp_formulanet_text", "pp_formulanet_vision")


def crossed_layers(keys: ClassKeys, layers: int, hidden: int) -> list[TokenMixer | None]:
    """Token mixers of mllama: cross-attention in the listed layers."""
    heads = keys.integer("num_attention_heads")
    cross = TowerCrossSpec(
        num_heads=heads,
        num_kv_heads=keys.integer("num_key_value_heads"),
        head_dim=max(hidden // heads, 1),
        source_width=hidden,
        head_norms=True,
        gate_parameters=2,
    )
    crossed = set(keys.reader.integers("cross_attention_layers", MLLAMA_CROSSED))
    return [cross if layer in crossed else None for layer in range(layers)]


MLLAMA = Decoder(qkv_bias=False, output_bias=False, head_dim=None, ties=False, mixers=crossed_layers)
IDEFICS = Decoder(kv_heads=None, qkv_bias=False, output_bias=False, head_dim=None)


def import_mllama(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a Llama 3.2 Vision: tiles with a tower of two parts, whose layers' outputs are joined."""
    model = import_decoder(reader.child("text_config"), name, "mllama_text_model", MLLAMA)
    keys = ClassKeys(reader.child("vision_config"), "mllama_vision_model")
    width, heads, inner = keys.width("hidden_size"), keys.integer("attention_heads"), keys.width("intermediate_size")
    head_dim = divided_heads(keys.reader, "attention_heads", width, heads)
    tiles, patch, image = (
        keys.integer("max_num_tiles"),
        side(keys.reader, "patch_size", 14),
        side(keys.reader, "image_size", 448),
    )
    patches = max(image // patch, 1) ** 2 + 1
    joined = keys.width("vision_output_dim")
    if joined != width * (1 + len(keys.reader.integers("intermediate_layers_indices", MLLAMA_FEATURES))):
        keys.reader.refuse(
            "vision_output_dim", f"must be {width} for the last layer and each that is listed, is {joined}"
        )
    plain, gated = keys.integer("num_hidden_layers"), keys.integer("num_global_layers")
    layer = vision_layer(width, heads, inner, gated=False, norm="layer")
    attention = layer.attention.model_copy(update={"qkv_bias": False, "output_bias": False, "head_dim": head_dim})
    embedding = keys.integer("num_channels") * patch * patch * width
    ratios = keys.reader.data.get("supported_aspect_ratios")
    shapes = len(ratios) if isinstance(ratios, list) and ratios else MLLAMA_RATIOS
    positions = patches * width + (shapes + 1) * tiles * patches * width + 1
    around_tiles = 2 * ((shapes + 1) * tiles * width + 1)
    extra = embedding + width + positions + around_tiles + 4 * width + 2 * gated
    # Every tile is padded before the layers, and its padding left out behind them.
    padded = math.ceil(patches / TILE_MULTIPLE) * TILE_MULTIPLE
    vision = VisionSpec(
        hidden_size=width,
        num_layers=plain + gated,
        layer=layer.model_copy(update={"attention": attention}),
        patches_per_image=tiles * padded,
        tokens_per_image=tiles * patches,
        extra_parameters=extra + joined * model.hidden_size + model.hidden_size,
        projector_flops_per_image=2 * tiles * ((patches - 1) * embedding + patches * joined * model.hidden_size),
    )
    return model.model_copy(
        update={"family": "mllama", "vision": vision, "further_embedding_rows": MLLAMA_ROWS, "tie_embeddings": False}
    )


def import_blip(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a BLIP that writes captions: every layer of a BERT attends to the tower between attention and MLP."""
    text = reader.child("text_config")
    model = import_bert(text, name, "blip_text_model", Bert(untied_twice=False))
    keys, text_keys = ClassKeys(reader, "blip"), ClassKeys(text, "blip_text_model")
    images = Images(keys, model, text_keys)
    tower = images.vit("blip_vision_model")
    if not text_keys.on("is_decoder"):
        text.refuse("is_decoder", "must be true: without it the class has no cross-attention")
    text_keys.optional("encoder_hidden_size")  # the class sets it to the tower's width
    plain = model.layer_kinds[0]
    heads, head_dim = plain.attention.num_heads, plain.attention.head_dim
    cross = TowerCrossSpec(num_heads=heads, num_kv_heads=heads, head_dim=head_dim, source_width=tower.width, bias=True)
    causal = plain.attention.model_copy(update={"causal": True})
    own = plain.model_copy(update={"attention": causal, "mlp": None, "num_norms": 1})
    kinds, runs = runs_of([own, plain.model_copy(update={"attention": cross})] * model.num_layers)
    tied = keys.on("tie_word_embeddings") or model.tie_embeddings
    ends = model.ends
    if ends is not None and not tied:
        ends = ends.model_copy(update={"tables": (*ends.tables, *second_bias(model.vocab_size))})
    changed: dict[str, Any] = {"layer_kinds": kinds, "layer_runs": runs, "tie_embeddings": tied, "ends": ends}
    return model.model_copy(update={**changed, "family": "blip", "vision": tower.spec(tower.patches + 1)})


def import_pp_formulanet(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a PP-FormulaNet: every layer of a decoder of the mBART kind attends to a SAM between attention and MLP."""
    text, vision = (
        ClassKeys(reader.child(key), kind)
        for key, kind in zip(("text_config", "vision_config"), FORMULA_PARTS, strict=True)
    )
    hidden, length = text.width("d_model"), text.integer("max_position_embeddings")
    sam, middle, width = read_sam(vision), *(vision.width(f"post_conv_{key}_channels") for key in ("mid", "out"))
    for keys, expected in (("post_conv_in_channels", sam.channels), ("decoder_hidden_size", hidden)):
        if vision.width(keys) != expected:
            vision.reader.refuse(keys, f"must be {expected}, the width that meets it, is {vision.width(keys)}")
    convolutions, _, tokens = sam.shrink(middle, width)
    layers = list[LayerSpec]()
    for layer in stack(text, Bart(pre_norm=True), "decoder", hidden):
        heads, head_dim = layer.attention.num_heads, layer.attention.head_dim
        cross = TowerCrossSpec(num_heads=heads, num_kv_heads=heads, head_dim=head_dim, source_width=hidden, bias=True)
        layers.append(layer.model_copy(update={"cross": None, "mlp": None, "num_norms": 1}))
        layers.append(layer.model_copy(update={"attention": cross, "cross": None, "num_norms": 2}))
    kinds, runs = runs_of(layers)
    return ModelSpec(
        name=name,
        family="pp_formulanet",
        hidden_size=hidden,
        vocab_size=text.integer("vocab_size"),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=False,
        learned_positions=length + 2,
        embedding_norm=True,
        max_sequence_length=length,
        activation_function=text.text("activation_function", "gelu"),
        position="learned",
        vision=sam.tower.spec(tokens, convolutions, linear(width, width, tokens), linear(width, hidden, tokens)),
    )


def import_idefics(reader: ConfigReader, name: str) -> ModelSpec:
    """Read an IDEFICS: a layer of cross-attention before every ``cross_layer_interval``-th layer of a Llama."""
    model = import_decoder(reader, name, "idefics", IDEFICS)
    keys, vision_keys = ClassKeys(reader, "idefics"), ClassKeys(reader.child("vision_config"), "idefics_vision")
    vision = _idefics_tower(keys, vision_keys)
    plain, heads = model.layer_kinds[0], keys.integer("num_attention_heads")
    vector = keys.text("alpha_type", "float") == "vector"
    cross = TowerCrossSpec(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=max(model.hidden_size // heads, 1),
        source_width=vision.hidden_size,
        head_norms=keys.on("qk_layer_norms"),
        gate_parameters=2 * (model.hidden_size if vector else 1),
    )
    interval, layers = keys.integer("cross_layer_interval"), list[LayerSpec]()
    if model.num_layers % interval:
        reader.refuse("cross_layer_interval", f"must divide the {model.num_layers} layers, is {interval}")
    crossing = plain.model_copy(update={"attention": cross})
    for layer in range(model.num_layers):
        layers += [crossing, plain] if layer % interval == 0 else [plain]
    kinds, runs = runs_of(layers)
    changed: dict[str, Any] = {"vision": vision, "layer_kinds": kinds, "layer_runs": runs}
    rows = keys.optional("additional_vocab_size", minimum=0) or 0
    return model.model_copy(update={**changed, "family": "idefics", "vocab_size": model.vocab_size + rows})


def _idefics_tower(keys: ClassKeys, tower: ClassKeys) -> VisionSpec:
    if keys.on("use_resampler"):
        keys.reader.refuse("use_resampler", "asks for a Perceiver behind the tower, which is not modelled")
    width, heads, inner = (
        tower.width("embed_dim"),
        tower.integer("num_attention_heads"),
        tower.width("intermediate_size"),
    )
    divided_heads(tower.reader, "num_attention_heads", width, heads)
    patch, image = side(tower.reader, "patch_size", 14), side(tower.reader, "image_size", 224)
    if patch > image:
        tower.reader.refuse("patch_size", f"must not exceed the image size {image}, is {patch}")
    patches = max(image // patch, 1) ** 2
    embedding = tower.integer("num_channels") * patch * patch * width
    return VisionSpec(
        hidden_size=width,
        num_layers=tower.integer("num_hidden_layers"),
        layer=vision_layer(width, heads, inner, gated=False, norm="layer"),
        patches_per_image=patches + 1,
        tokens_per_image=patches + 1,
        extra_parameters=embedding + width + (patches + 1) * width + 4 * width,
        projector_flops_per_image=2 * patches * embedding,
    )
