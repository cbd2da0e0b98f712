"""Forward FLOPs of a vision tower with its projector equal what torch counts while the class makes image features."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.flops import vision_flops_per_image
from planner.model.hf_config import model_from_hf_config

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from benchmarks.model_type_cases import made, small_config, written  # noqa: E402
from benchmarks.model_types import classes_by_type  # noqa: E402


def _pixels(side: int) -> Any:
    return torch.rand(1, 3, side, side)


# Family -> keys beside the small config's, and what its class makes features from.
_IMAGES: dict[str, tuple[dict[str, Any], Any]] = {
    "aria": (
        {"projector_patch_to_query_dict": {"49": 30}},
        lambda: {"pixel_values": _pixels(224), "pixel_mask": torch.ones(1, 224, 224, dtype=torch.bool)},
    ),
    "blip-2": ({}, lambda: {"pixel_values": _pixels(224)}),
    "fuyu": ({}, lambda: {"pixel_values": torch.rand(1, 100, 2700)}),
    "got_ocr2": ({"vision_config.image_size": 240}, lambda: {"pixel_values": _pixels(240)}),
    "granite_docling": (
        {},
        lambda: {"pixel_values": _pixels(512)[None], "pixel_attention_mask": torch.ones(1, 1, dtype=torch.bool)},
    ),
    "idefics2": ({}, lambda: {"pixel_values": _pixels(224)[None]}),
    "minicpmv4_6": (
        {"insert_layer_id": 2},
        lambda: {"pixel_values": torch.rand(1, 3, 16, 56 * 896), "target_sizes": torch.tensor([[56, 56]])},
    ),
    "molmo2": (
        {},
        lambda: {
            "pixel_values": torch.rand(1, 729, 588),
            "image_token_pooling": torch.zeros(196, 4, dtype=torch.long),
            "image_grids": torch.tensor([[14, 14, 0, 0]]),
        },
    ),
    "ovis2": ({}, lambda: {"pixel_values": _pixels(224)}),
    "step3p7": ({"vision_config.image_size": 280}, lambda: {"pixel_values": _pixels(280)}),
    "vipllava": (
        {"vision_feature_layer": [-2, -3, 1], "vision_config.image_size": 224},
        lambda: {"pixel_values": _pixels(224)},
    ),
}


@pytest.mark.parametrize("model_type", sorted(_IMAGES))
def test_flops_of_image_features_equal_torch(model_type: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    changes, inputs = _IMAGES[model_type]
    class_name = classes_by_type()[model_type][1]
    small, _ = small_config(model_type, class_name)
    config = made(model_type, {**small._survey[1], **changes})
    spec = model_from_hf_config(written(config), "small", "config.json")
    model = getattr(transformers, class_name)._from_config(config, attn_implementation="eager").eval()
    model.requires_grad_(False)  # the counter's hooks ask leaves that need gradients for theirs
    features = getattr(model, "get_image_features", None) or model.model.get_image_features
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        features(**inputs())
    # Ours are forward and backward, three times the forward pass.
    assert vision_flops_per_image(spec) / 3 == pytest.approx(counter.get_total_flops(), rel=1e-6)
