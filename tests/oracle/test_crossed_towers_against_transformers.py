"""Decoders that attend to a tower: our FLOPs of tower and decoder against torch's count of the class itself."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.flops import forward_flops_per_token, tower_flops_per_item
from planner.model.hf_config import model_from_hf_config

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from benchmarks.model_type_cases import small_config, written  # noqa: E402
from benchmarks.model_types import classes_by_type  # noqa: E402

LENGTH, IMAGE = 64, 112


def _images(model_type: str, vision: Any) -> dict[str, Any]:
    size = vision.image_size
    if model_type == "idefics":
        return {
            "pixel_values": torch.zeros(1, 1, 3, size, size),
            "image_attention_mask": torch.ones(1, LENGTH, 1, dtype=torch.long),
            "attention_mask": torch.ones(1, LENGTH, dtype=torch.long),
        }
    tiles = vision.max_num_tiles
    return {
        "pixel_values": torch.zeros(1, 1, tiles, 3, size, size),
        "aspect_ratio_ids": torch.ones(1, 1, dtype=torch.long),
        "aspect_ratio_mask": torch.ones(1, 1, tiles, dtype=torch.long),
        "cross_attention_mask": torch.ones(1, LENGTH, 1, tiles),
    }


@pytest.mark.parametrize("model_type", ["mllama", "idefics"])
def test_flops_of_one_image_and_its_text_agree_with_torch(model_type: str) -> None:
    class_name = classes_by_type()[model_type][1]
    small, _ = small_config(model_type, class_name)
    # Four tiles of a small image have every term that those of a large one have.
    small.vision_config.image_size = min(small.vision_config.image_size, IMAGE)
    spec = model_from_hf_config(written(small), "small", "config.json")
    for name in ("text_config", "vision_config"):
        if getattr(small, name, None) is not None:
            getattr(small, name)._attn_implementation = "eager"
    model = getattr(transformers, class_name)._from_config(small, attn_implementation="eager").eval()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        tokens = torch.zeros(1, LENGTH, dtype=torch.long)
        model(input_ids=tokens, **_images(model_type, small.vision_config), use_cache=False)
    counts = {name.rsplit(".", 1)[-1]: sum(each.values()) for name, each in counter.get_flop_counts().items()}
    assert spec.vision is not None
    source = spec.vision.tokens_per_image
    decoder = forward_flops_per_token(spec, LENGTH, causal=False, source_length=source) * LENGTH
    tower = tower_flops_per_item(spec.vision) / 3.0
    assert decoder + tower == pytest.approx(counter.get_total_flops(), rel=0.005)
    seen = counts["vision_model"] + counts.get("multi_modal_projector", 0)
    assert decoder == pytest.approx(counter.get_total_flops() - seen, rel=1e-9)
