"""Families whose forward pass has steps that a ``ModelSpec`` does not hold: its shapes alone build another model.

Such a model can be planned: the steps cost next to nothing.  A back-end that builds from shapes must not write files
for it.  Source: ``transformers`` 5.23 modeling files.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.model.spec import ModelSpec

_SOME_ROTATE = "leaves rotary positions out of some layers"
_MULTIPLIES = "multiplies embedding, residuals, attention and logits by constants"
_SINUSOIDS = "adds sinusoids to the embedding"

FORWARD_FACTORS: Mapping[str, str] = {
    **dict.fromkeys(("cohere2", "cohere2_moe"), f"scales the logits and {_SOME_ROTATE}"),
    **dict.fromkeys(("exaone4", "exaone_moe", "llama4_text", "smollm3"), _SOME_ROTATE),
    **dict.fromkeys(("granite_swa", "granitemoe", "granitemoe_swa", "granitemoeshared", "hyperclovax"), _MULTIPLIES),
    **dict.fromkeys(("falcon_h1", "granitemoehybrid"), _MULTIPLIES),
    **dict.fromkeys(("ctrl", "xglm"), _SINUSOIDS),
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe"), "norms queries and keys after their rotation"),
    "cohere_compass_text": f"scales the logits and {_SOME_ROTATE}",
    "dbrx": "clips queries, keys and values where its config says so",
    **dict.fromkeys(("gemma4_text", "gemma4_unified_text"), "scales the embedding, norms values and scales no scores"),
    "minimax_m3_vl_text": "clips the gate of its MLPs and adds to their inputs",
    "mimo_v2_flash": "scales values, and has other key-value heads in sliding layers",
    "biogpt": "scales the embedding by the square root of its width",
    "cohere": "scales the logits",
    "gpt_neo": "leaves scores unscaled and looks at a window in every second layer",
    "minimax": "adds to the normed input and scales both branches",
    "minicpm3": "scales embedding, residuals and logits",
    "nanochat": "norms queries and keys without weights and caps the logits",
    "phimoe": "routes with a sparse mixer",
    "vaultgemma": "scales the embedding by the square root of its width and caps the logits",
}
"""``family`` of a ``ModelSpec`` -> what its class does besides."""


def forward_factor(model: ModelSpec) -> str | None:
    """The family with what it does besides its layers, or None."""
    reason = FORWARD_FACTORS.get(model.family)
    return None if reason is None else f"{model.family}, which {reason}"
