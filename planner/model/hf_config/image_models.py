"""Models that read images, as tables: which language model, which tower, which projector.

``ImageModel`` is one family's entry; the entries stand in ``tables.images``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.model.hf_config.class_keys import ClassKeys, class_defaults
from planner.model.hf_config.image_parts import Part, attention, linear, mlp, norm, scores, table
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.vit_towers import ImageTower, read_vit
from planner.model.hf_config.vits import VITS
from planner.model.spec import ModelSpec, TowerSpec, VisionSpec

TextImporter = Callable[[ConfigReader, str, str], ModelSpec | None]

_HARMLESS_ENDS = ("_act", "_act_fn", "_eps", "dropout", "_rate", "_range", "_std", "_token_id", "_token_index", "_mode")
_HARMLESS = frozenset(
    {
        "beta",
        "drop_vision_last_layer",
        "encoder_hidden_size",
        "hidden_size",
        "img_max_token_num",
        "interpolate_mode",
        "label_smoothing",
        "layerscale_value",
        "max_position_embeddings",
        "max_vit_seq_len",
        "max_window_layers",
        "min_image_size",
        "model_type",
        "num_attention_heads",
        "num_image_tokens",
        "num_key_value_heads",
        "num_patches",
        "num_pos_feats",
        "patch_dim",
        "projection_dim",
        "quant_state_dims",
        "rope_parameters",
        "rope_theta",
        "tokenize_function",
        "scale",
        "use_cache",
        "use_qformer_text_input",
        "video_patch_dim",
        "vocab_size",
    }
)
"""Keys that change no shape where an entry does not read them: of losses, of preprocessing, or overwritten."""


@dataclass(slots=True)
class Images:
    """What an entry reads a tower from: the whole config, its parts and the language model."""

    keys: ClassKeys
    text: ModelSpec
    text_keys: ClassKeys
    parts: list[ClassKeys] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Hidden width of the language model."""
        return self.text.hidden_size

    def part(self, holder: str, model_type: str, within: ClassKeys | None = None) -> ClassKeys:
        """The nested config at ``holder``; where it is absent, the values that the class of the family gives it."""
        keys = within or self.keys
        given = keys.reader.data.get(holder)
        known: Mapping[str, Any] = class_defaults().get(keys.model_type, {}).get("absent", {}).get(holder, {})
        if given is None and known:
            reader = ConfigReader(dict(known), keys.reader.where, f"{keys.reader.pointer}/{holder}", keys.reader)
            keys.reader.child(holder)
        else:
            reader = keys.reader.child(holder)
        kind = reader.text("model_type", default=model_type)
        part = ClassKeys(reader, kind)
        self.parts.append(part)
        return part

    def vit(self, model_type: str, *, merge: int = 1, keys: ClassKeys | None = None) -> ImageTower:
        """The tower at ``vision_config`` (or of ``keys``), of the kind that its ``model_type`` names."""
        keys = keys or self.part("vision_config", model_type)
        if keys.model_type not in VITS:
            kinds = ", ".join(sorted(VITS))
            keys.reader.refuse("model_type", f"{keys.model_type[:60]!r} is not a tower that is read", f"read: {kinds}")
            keys = ClassKeys(keys.reader, model_type)
        return read_vit(keys, VITS[keys.model_type], merge=merge)


@dataclass(frozen=True, slots=True)
class ImageModel:
    """One family that reads images."""

    text: str
    """The language model's type where its config names none."""
    tower: Callable[[Images], VisionSpec | TowerSpec | None]
    """The vision tower; None where the config has none."""
    holder: str | None = "text_config"
    """Where the language model's keys stand; None: at the top."""
    ties_within: bool = False
    """Whether the language model inside says itself if its head is tied."""
    ties_either: bool = False
    """Whether the head is tied where one of both configs says so."""
    never_tied: bool = False
    adjust: Callable[[ClassKeys, ModelSpec], ModelSpec] | None = None
    """What the language model's keys say that its own table cannot."""
    audio: Callable[[Images], TowerSpec | None] | None = None
    finish: Callable[[Images, ModelSpec], ModelSpec] | None = None
    """What parts of the config say of the whole model."""


def import_image_model(
    reader: ConfigReader, name: str, family: str, entry: ImageModel, import_text: TextImporter
) -> ModelSpec | None:
    """Read one model; a key of a tower's class that changes it and is not read is a finding."""
    keys, text = ClassKeys(reader, family), reader
    if entry.holder is not None:
        absent = class_defaults().get(family, {}).get("absent", {}).get(entry.holder)
        text = reader.child(entry.holder)
        if reader.data.get(entry.holder) is None and absent:
            text = ConfigReader(dict(absent), reader.where, f"{reader.pointer}/{entry.holder}", reader)
    model = import_text(text, name, entry.text)
    if model is None:
        return None
    text_keys = ClassKeys(text, entry.text)
    if entry.adjust:
        model = entry.adjust(text_keys, model)
    images = Images(keys, model, text_keys)
    vision = entry.tower(images)
    towers = (vision if isinstance(vision, TowerSpec) else None, entry.audio(images) if entry.audio else None)
    if entry.finish:
        model = entry.finish(images, model)
    tied = keys.on("tie_word_embeddings")
    if entry.ties_within or entry.ties_either:
        tied = model.tie_embeddings or (entry.ties_either and tied)
    for part in images.parts:
        _refuse_unread(part)
    return model.model_copy(
        update={
            "family": family,
            "vision": vision if isinstance(vision, VisionSpec) else None,
            "further_towers": tuple(tower for tower in towers if tower is not None),
            "tie_embeddings": tied and not entry.never_tied,
        }
    )


def _refuse_unread(keys: ClassKeys) -> None:
    for key, value in keys.reader.unread():
        known = key in keys.defaults and key not in _HARMLESS and not key.endswith(_HARMLESS_ENDS)
        if known and value is not None and value != keys.defaults[key]:
            hint = f"remove {key}, or describe the model in model YAML"
            keys.reader.refuse(key, f"changes a {keys.model_type} and is not read", hint)


def qformer(
    keys: ClassKeys,
    queries: int,
    sources: int,
    source_width: int,
    *,
    text: bool,
    width: int | None = None,
    windows: int = 1,
) -> Part:
    """A Q-Former: post-norm layers over learned queries, cross-attention to a tower's states in some of them.

    ``text``: layers hold a second MLP for text beside the queries, which images do not run through.  ``width``: where a
    class sets it.  ``windows``: as many groups of ``queries`` and ``sources``, each on its own.
    """
    width, inner = width or keys.width("hidden_size"), keys.width("intermediate_size")
    layers, every = keys.integer("num_hidden_layers"), keys.integer("cross_attention_frequency")
    network = mlp(width, inner, width, windows * queries) + norm(width)
    one = attention(width, queries, queries, windows=windows) + norm(width) + network
    crossing = attention(width, queries, sources, key_width=source_width, windows=windows) + norm(width)
    part = one.times(layers) + crossing.times(-(-layers // every))
    return part + (network.idle().times(layers) if text else Part())


def perceiver(keys: ClassKeys, context: int, width: int) -> Part:
    """A perceiver resampler: learned latents that attend to the context and themselves, with gated MLPs."""
    latents, heads = keys.integer("resampler_n_latents"), keys.integer("resampler_n_heads")
    kv_heads, head_dim = keys.integer("num_key_value_heads"), keys.integer("resampler_head_dim")
    if heads % kv_heads:
        keys.reader.refuse("num_key_value_heads", f"must divide resampler_n_heads = {heads}, is {kv_heads}")
    seen = context + latents
    inner = heads * head_dim
    layer = norm(width, bias=False).times(3) + mlp(width, 4 * width, width, latents, gated=True, bias=False)
    layer += linear(width, inner, latents, bias=False) + linear(inner, width, latents, bias=False)
    layer += linear(width, kv_heads * head_dim, seen, bias=False).times(2) + scores(latents, seen, inner)
    return table(latents, width) + layer.times(keys.integer("resampler_depth")) + norm(width, bias=False)
