"""From a ``transformer/config.json`` to a ``ModelSpec``, by its ``_class_name``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from planner.model.diffusers_config import auraflow, cosmos, crossed, hunyuan_video, joint
from planner.model.diffusers_config.arguments import Arguments, Family
from planner.model.hf_config.reader import ConfigReader
from planner.model.spec import ModelSpec
from profiles.errors import DocumentInvalid
from profiles.spelling import typing_slip

Builder = Callable[[Arguments, str, str], ModelSpec]

DENOISERS: dict[str, tuple[Family, Builder]] = {
    "AuraFlowTransformer2DModel": (auraflow.AURAFLOW, auraflow.auraflow),
    "CogVideoXTransformer3DModel": (joint.COGVIDEOX, joint.cogvideox),
    "CosmosTransformer3DModel": (cosmos.COSMOS, cosmos.cosmos),
    "FluxTransformer2DModel": (joint.FLUX, joint.flux),
    "HunyuanVideoTransformer3DModel": (hunyuan_video.HUNYUAN_VIDEO, hunyuan_video.hunyuan_video),
    "LTXVideoTransformer3DModel": (crossed.LTX, crossed.ltx),
    "PixArtTransformer2DModel": (crossed.PIXART, crossed.pixart),
    "QwenImageTransformer2DModel": (joint.QWEN_IMAGE, joint.qwen_image),
    "SD3Transformer2DModel": (joint.SD3, joint.sd3),
    "WanTransformer3DModel": (crossed.WAN, crossed.wan),
}
"""Classes of diffusers that can be read."""
REFUSED: dict[str, str] = {
    "HiDreamImageTransformer2DModel": "routed experts for latents alone, and text of several encoders in each layer",
    "Lumina2Transformer2DModel": "layers over latents alone and over text alone before those over both",
    "MochiTransformer3DModel": "a text stream of another width than the latents'",
    "SanaTransformer2DModel": "linear attention over all tokens at once, and MLPs that convolve rows and columns",
}
"""Classes of the installed release that have what no layer here describes, with what it is."""


def is_diffusers_config(data: object) -> bool:
    """Whether plain data is the config of a diffusers class."""
    return isinstance(data, dict) and "_class_name" in data and "layer_kinds" not in data


def model_from_diffusers_config(data: dict[str, Any], name: str, where: str) -> ModelSpec:
    """Turn a parsed ``transformer/config.json`` into a ``ModelSpec``; keys left out take the class's defaults.

    Raises ``DocumentInvalid`` for a class that is not known (naming those that are), for keys that the class does not
    have, and for impossible values, all of them at once.
    """
    kind = data.get("_class_name")
    if not isinstance(kind, str) or kind not in DENOISERS:
        raise _unsupported(kind, where)
    family, build = DENOISERS[kind]
    reader = ConfigReader(data, where)
    keys = Arguments(reader, family)
    try:
        spec = build(keys, name, kind)
    except (ValidationError, DocumentInvalid) as error:
        reader.finish()
        said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error.what
        raise DocumentInvalid(f"the config does not describe a possible model: {said}", where=where) from error
    reader.finish()
    return spec


def _unsupported(kind: object, where: str) -> DocumentInvalid:
    known, where = tuple(sorted(DENOISERS)), f"{where}#/_class_name"
    if not isinstance(kind, str):
        return DocumentInvalid("_class_name must be the name of a class", where=where, hint=", ".join(known))
    if "Pipeline" in kind:
        hint = "name the folder transformer/ of the pipeline, or its config.json"
        return DocumentInvalid(f"{kind[:80]!r} is a pipeline of several models", where=where, hint=hint)
    if kind in REFUSED:
        what = f"the diffusers class {kind!r} is not supported: it has {REFUSED[kind]}"
        return DocumentInvalid(what, where=where, hint=f"Supported: {', '.join(known)}")
    match = typing_slip(kind[:80], known)
    start = f"did you mean '{match}'? " if match else ""
    what = f"the diffusers class {kind[:80]!r} is not supported"
    return DocumentInvalid(what, where=where, hint=f"{start}Supported: {', '.join(known)}")
