"""Forward FLOPs of PP-FormulaNet and of a decoder of codec tokens equal what torch counts of their classes."""

from __future__ import annotations

import pytest

from planner.model.flops import forward_flops_per_token, vision_flops_per_image
from planner.model.hf_config import model_from_hf_config

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from benchmarks.model_type_cases import made, small_config, written  # noqa: E402
from benchmarks.model_type_flops import flops_ratio  # noqa: E402
from benchmarks.model_types import classes_by_type  # noqa: E402


def test_a_decoder_that_crosses_to_a_tower_in_every_layer_counts_as_torch() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    class_name = classes_by_type()["pp_formulanet"][1]
    small, _ = small_config("pp_formulanet", class_name)
    config = made("pp_formulanet", {**small._survey[1], "vision_config.image_size": 224})
    spec = model_from_hf_config(written(config), "small", "config.json")
    model = getattr(transformers, class_name)._from_config(config, attn_implementation="eager").eval()
    model.requires_grad_(False)  # the counter's hooks ask leaves that need gradients for theirs
    assert spec.vision is not None
    length = spec.vision.tokens_per_image  # the count of one token takes as many of the tower as of text
    tokens = torch.zeros(1, length, dtype=torch.long)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(pixel_values=torch.rand(1, 3, 224, 224), decoder_input_ids=tokens, use_cache=False)
    ours = forward_flops_per_token(spec, length, causal=False) * length + vision_flops_per_image(spec) / 3
    assert ours == pytest.approx(counter.get_total_flops(), rel=1e-6)


def test_a_decoder_of_text_and_audio_tokens_counts_as_torch() -> None:
    class_name = classes_by_type()["kyutai_speech_to_text"][1]
    small, _ = small_config("kyutai_speech_to_text", class_name)
    assert flops_ratio(class_name, small, written) == pytest.approx(1.0, abs=1e-4)
