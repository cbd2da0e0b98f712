"""How the people who published a model trained it, where a ``ModelSpec`` does not hold it: routing and positions.

None of it decides time or memory, but a run without it trains another model: experts that nothing balances, routed
outputs on another scale, rotary frequencies without the stretch.  The table goes by the family of the model; a family
that is not in it gets the auxiliary loss at the coefficient that Megatron-LM recommends to start from.

Sources: Megatron-Bridge 0.6.2 ``models/<family>/*_bridge.py`` (types, coefficients and where softmax stands), the
models' ``config.json`` (``routed_scaling_factor``, ``rope_scaling``), arXiv 2412.19437 section 4.2 (DeepSeek-V3: update
rate 0.001, coefficient 0.0001), arXiv 2405.04434 (DeepSeek-V2), arXiv 2508.06471 section 2.4 (GLM-4.5), Megatron-LM
``examples/mixtral`` (0.01).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from planner.backends.rules.rule import mixture, used_kinds
from planner.model.spec import ModelSpec

Balancing = Literal["aux_loss", "seq_aux_loss"]


@dataclass(frozen=True, slots=True)
class Routing:
    """Router of a mixture.  ``normalizes``: the chosen scores are divided by their sum."""

    balancing: Balancing = "aux_loss"
    coefficient: float = 1e-2
    scaling_factor: float = 1.0
    normalizes: bool = True
    bias_update_rate: float | None = None
    """Of a correction added to the scores before the choice, updated outside the gradient; None = there is none."""
    source: str = "Megatron-LM's starting value: no recipe of this family is known here"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rotary frequencies stretched for a longer context: ``llama3`` (by bands) or ``yarn`` (with its ``mscale``)."""

    kind: Literal["llama3", "yarn"]
    factor: float
    mscale: float = 1.0
    mscale_all_dim: float = 0.0
    source: str = ""


_ROUTING: Mapping[str, Routing] = {
    "deepseek_v2": Routing("seq_aux_loss", 1e-3, 16.0, normalizes=False, source="DeepSeek-V2, arXiv 2405.04434"),
    "deepseek_v3": Routing("seq_aux_loss", 1e-4, 2.5, bias_update_rate=1e-3, source="DeepSeek-V3, arXiv 2412.19437"),
    "kimi_k2": Routing("seq_aux_loss", 1e-3, 2.827, bias_update_rate=1e-3, source="Kimi K2, Megatron-Bridge 0.6.2"),
    "glm4_moe": Routing("seq_aux_loss", 1e-4, bias_update_rate=1e-3, source="GLM-4.5, arXiv 2508.06471"),
    "qwen2_moe": Routing("aux_loss", 1e-3, normalizes=False, source="Qwen's config.json"),
    "qwen3_moe": Routing("aux_loss", 1e-3, source="Qwen3, Megatron-Bridge 0.6.2"),
    "mixtral": Routing("aux_loss", 1e-2, source="Mixtral, Megatron-LM's examples/mixtral"),
}
_GLM_SCALING: Mapping[int, float] = {160: 2.5}
"""Experts -> factor: GLM-4.5 has 2.5, GLM-4.5-Air (128 experts) 1."""
_YARN: Mapping[str, Stretch] = {
    "deepseek_v2": Stretch("yarn", 40.0, 0.707, 0.707, "DeepSeek-V2's config.json"),
    "deepseek_v3": Stretch("yarn", 40.0, 1.0, 1.0, "DeepSeek-V3's config.json"),
    "kimi_k2": Stretch("yarn", 32.0, 1.0, 1.0, "Kimi K2's config.json"),
}
_LLAMA_3_1 = (500_000.0, 131_072)
"""Rotary base and positions that Llama-3.1, 3.2 and 3.3 share; Llama-3 has 8,192 positions."""


def routing(model: ModelSpec) -> Routing | None:
    """The router's recipe, None for a dense model."""
    moe = mixture(model)
    if moe is None:
        return None
    found = _ROUTING.get(model.family, Routing())
    if model.family == "glm4_moe":
        found = replace(found, scaling_factor=_GLM_SCALING.get(moe.num_experts, 1.0))
    corrected = moe.score_function == "sigmoid" and moe.router_bias and not moe.expert_bias
    if corrected and found.bias_update_rate is None:
        found = replace(found, bias_update_rate=1e-3)
    # Only sigmoid scores take the correction (core/transformer/transformer_config.py:2284).
    return found if moe.score_function == "sigmoid" else replace(found, bias_update_rate=None)


def stretch(model: ModelSpec) -> Stretch | None:
    """How the model's rotary frequencies are stretched, None where they are not or nothing says so."""
    if model.position != "rope" or model.learned_positions:
        return None
    if used_kinds(model)[0].attention.kind == "mla":
        return _YARN.get(model.family)
    if model.family == "llama" and (model.rotary_base, model.max_sequence_length) == _LLAMA_3_1:
        # 3.2's small models, which tie their embeddings, are stretched by 32 and the others by 8.
        factor = 32.0 if model.tie_embeddings else 8.0
        return Stretch("llama3", factor, source="Llama-3.1's and 3.2's config.json")
    return None
