"""How the people who published a model trained it, where a ``ModelSpec`` does not hold it: routing and positions.

None of it decides time or memory, but a run without it trains another model: experts that nothing balances, routed
outputs on another scale, rotary frequencies without the stretch.  Routing goes by the model's family, and what the
sizes of one family differ in (scale of the routed output, YaRN's factor) by the size.  Every value was read in the
place that its ``source`` names; what no place says is not here, and ``None`` means "not known".

Read, too: where two places agree, one of them is cited.

- GLM-4.5: Megatron-Bridge keeps the correction of the scores as it is loaded (update rate 0) and balances with the
  loss; the values of arXiv 2508.06471 could not be opened.
- gpt-oss: Megatron-Bridge balances nothing; no recipe that does was found.
- DeepSeek-V2's paper has three losses (by expert, device and communication); the released classes have the one that is
  here (``aux_loss_alpha``, ``seq_aux``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from planner.backends.rules.rule import mixture, used_kinds
from planner.model.spec import ModelSpec

Balancing = Literal["aux_loss", "seq_aux_loss", "none"]

_BRIDGE = "Megatron-Bridge 0.6.2 models/"
_ZOO = "yanring/Megatron-MoE-ModelZoo model_configs/benchmarking/"
_SLIME = "zyzshishui/slime scripts/models/"
_RELEASED = "NVIDIA-NeMo/Megatron-Bridge tests/unit_tests/models/deepseek/test_deepseek_bridges.py at 67ec9b1e"
"""Holds the released ``config.json`` of DeepSeek-V2 and DeepSeek-V3 whole."""


@dataclass(frozen=True, slots=True)
class Routing:
    """Router of a mixture.  ``normalizes``: the chosen scores are divided by their sum."""

    balancing: Balancing = "aux_loss"
    coefficient: float = 1e-2
    """Of the loss; 0 with ``none``."""
    normalizes: bool = True
    bias_update_rate: float | None = None
    """Of a correction added to the scores before the choice, updated outside the gradient; None = there is none."""
    scaling_factor: float | None = 1.0
    """Of the routed experts' output; None = differs by size, and that of this size is not known."""
    source: str = "the value to start from, Megatron-LM 0.19.2 training/arguments.py:3370; no recipe is known here"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rotary frequencies stretched for a longer context: ``llama3`` (by bands) or ``yarn`` (with its ``mscale``)."""

    kind: Literal["llama3", "yarn"]
    factor: float
    original_positions: int
    mscale: float = 1.0
    mscale_all_dim: float = 0.0
    source: str = ""
    beta_fast: float = 32.0
    """Rotations of the band that keeps its frequencies (YaRN); ``beta_slow`` is 1 for all."""


_ROUTING: Mapping[str, Routing] = {
    "deepseek_v2": Routing("seq_aux_loss", 1e-3, normalizes=False, source=f"DeepSeek-V2's config.json, {_RELEASED}"),
    "deepseek_v3": Routing("seq_aux_loss", 1e-4, bias_update_rate=1e-3, source=f"{_ZOO}DeepSeek-V3.yaml at 31942f09"),
    # Bridge leaves the update rate at megatron-core's default (transformer_config.py:800).
    "kimi_k2": Routing("seq_aux_loss", 1e-3, bias_update_rate=1e-3, source=f"{_BRIDGE}kimi/kimi_bridge.py:60-86"),
    "glm4_moe": Routing("seq_aux_loss", 1e-3, bias_update_rate=0.0, source=f"{_BRIDGE}glm/glm45_bridge.py:71-79"),
    "qwen2_moe": Routing(
        "aux_loss", 1e-3, normalizes=False, source="transformers 5.23 qwen2_moe/configuration_qwen2_moe.py:101-103"
    ),
    "qwen3_moe": Routing("aux_loss", 1e-3, source=f"{_BRIDGE}qwen/qwen3_moe_bridge.py:64-66"),
    "mixtral": Routing(
        "aux_loss", 1e-2, source="Megatron-LM examples/mixtral/train_mixtral_8x7b_distributed.sh at 0a409798"
    ),
    "gpt_oss": Routing("none", 0.0, source=f"{_BRIDGE}gpt_oss/gpt_oss_bridge.py:71"),
}
_SCALING: Mapping[str, Mapping[int, float]] = {
    # MaxText 0.2.5 configs/models/deepseek2-236b.yml:33 (in the released config.json too) and deepseek2-16b.yml:32.
    "deepseek_v2": {160: 16.0, 64: 1.0},
    # DeepSeek-V3: MaxText deepseek3-671b.yml:35.
    "deepseek_v3": {256: 2.5},
    # MaxText kimi-k2-1t.yml:34.
    "kimi_k2": {384: 2.827},
    # GLM-4.5 and GLM-4.5-Air: NVIDIA-NeMo/Megatron-Bridge docs/models/llm/glm45.md at f98012ad.
    "glm4_moe": {160: 2.5, 128: 1.0},
}
"""Family -> routed experts -> scale of their output."""
_YARN: Mapping[tuple[str, int], Stretch] = {
    ("deepseek_v2", 163_840): Stretch("yarn", 40.0, 4096, 0.707, 0.707, f"DeepSeek-V2's config.json, {_RELEASED}"),
    ("deepseek_v3", 163_840): Stretch("yarn", 40.0, 4096, 1.0, 1.0, f"{_ZOO}DeepSeek-V3.yaml at 31942f09"),
    # beta_fast: MaxText kimi-k2-1t.yml:52.
    ("kimi_k2", 131_072): Stretch("yarn", 32.0, 4096, 1.0, 1.0, f"{_SLIME}kimi-k2.sh at 34bba0b8", 1.0),
    ("kimi_k2", 262_144): Stretch("yarn", 64.0, 4096, 1.0, 1.0, "ParagEkbote/hf-model-inspector (Kimi-K2-0905)", 1.0),
}
"""Family and longest sequence, which is the factor times the 4,096 positions before the stretch."""
_LLAMA_3_1 = (500_000.0, 131_072)
"""Rotary base and positions that Llama-3.1, 3.2 and 3.3 share; Llama-3 has 8,192 positions."""
_LLAMA_SOURCE = {
    8.0: f"{_SLIME}llama3.1-8B.sh at 21631acb",
    32.0: "kevinstephano/thunder_model_blocks hf_llama/llama_config.py (Llama-3.2-1B's config.json)",
}


def routing(model: ModelSpec) -> Routing | None:
    """The router's recipe, None for a dense model."""
    moe = mixture(model)
    if moe is None:
        return None
    found = _ROUTING.get(model.family, Routing())
    if model.family in _SCALING:
        found = replace(found, scaling_factor=_SCALING[model.family].get(moe.num_experts))
    corrected = moe.score_function == "sigmoid" and moe.router_bias and not moe.expert_bias
    if corrected and found.bias_update_rate is None:
        # Megatron-LM's default, "same as that used in DeepSeekV3" (core_v0.12.1 training/arguments.py:2536).
        found = replace(found, bias_update_rate=1e-3)
    # Only sigmoid scores take the correction (core/transformer/transformer_config.py:2284).
    return found if moe.score_function == "sigmoid" else replace(found, bias_update_rate=None)


def stretch(model: ModelSpec) -> Stretch | None:
    """How the model's rotary frequencies are stretched, None where they are not or nothing says so."""
    if model.position != "rope" or model.learned_positions:
        return None
    if used_kinds(model)[0].attention.kind == "mla":
        return _YARN.get((model.family, model.max_sequence_length))
    if model.family == "llama" and (model.rotary_base, model.max_sequence_length) == _LLAMA_3_1:
        # 3.2's small models, which tie their embeddings, are stretched by 32 and the others by 8.
        factor = 32.0 if model.tie_embeddings else 8.0
        return Stretch("llama3", factor, 8192, source=_LLAMA_SOURCE[factor])
    return None
