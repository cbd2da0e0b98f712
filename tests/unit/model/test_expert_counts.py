"""The number of experts under either name that a class knows."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.hf_config import model_from_hf_config


@pytest.mark.parametrize("kind", ["mellum", "kolibri1", "qwen3_vl_moe"])
@pytest.mark.parametrize("key", ["num_experts", "num_local_experts"])
def test_both_names_are_read(kind: str, key: str) -> None:
    """Released configs say ``num_experts``."""
    said: dict[str, Any] = {key: 96}
    if kind == "qwen3_vl_moe":
        said = {"text_config": said, "vision_config": {"out_hidden_size": 2048}}
    model = model_from_hf_config({"model_type": kind, **said}, "read", "config.json")
    assert {layer.moe.num_experts for layer in model.layer_kinds if layer.moe is not None} == {96}
