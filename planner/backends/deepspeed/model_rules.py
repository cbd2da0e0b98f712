"""Rules about the models that the emitted script can build."""

from __future__ import annotations

from planner.backends.deepspeed.model_config import why_not_buildable
from planner.backends.deepspeed.vision_config import TEXT_FAMILIES
from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.model.mixers.kinds import FED


def _class(given: RuleInput) -> str | None:
    others = given.model.towers and given.model.family not in TEXT_FAMILIES
    return None if others else why_not_buildable(given.model)


def _mtp(given: RuleInput) -> str | None:
    if given.model.mtp is not None:
        return "the transformers classes build no multi-token-prediction modules; plan the model without them"
    return None


def _vision(given: RuleInput) -> str | None:
    fed = " and no ".join(FED[tower.modality] for tower in given.model.towers)
    return f"the script feeds no {fed}; plan the language model alone" if fed else None


def _traced_training(given: RuleInput) -> str | None:
    if given.model.traced is not None and given.workload.trained.adapters:
        return "adapters attach to layers by name, and a traced model's have none here: train all weights"
    return None


def _traced_attention(given: RuleInput) -> str | None:
    trace = given.model.traced
    if trace is not None and trace.attention != "sdpa":
        return f"the script asks for fused attention (sdpa), which {trace.class_name} does not have"
    return None


def _traced_recompute(given: RuleInput) -> str | None:
    trace = given.model.traced
    if trace is not None and not trace.checkpoints and given.strategy.recompute != "none":
        return f"the layers of {trace.class_name} have no checkpointing of transformers': use recompute none"
    return None


TRACED_RECOMPUTE = SpaceRule("M42", "transformers 5 modeling_layers.py", _traced_recompute, ("recompute",))
"""About the strategy, unlike the others here."""


def _precision(given: RuleInput) -> str | None:
    if given.workload.precision == "fp8":
        return "the config has no fp8 training; use precision bf16 or fp16"
    return None


def _dropout(given: RuleInput) -> str | None:
    return "the emitted model config sets no dropout; plan with dropout off" if given.workload.dropout else None


MODEL_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("M1", "transformers 5 (model classes), docs: emit deepspeed", _class),
    SpaceRule("M2", "transformers 5 modeling_deepseek_v3.py, modeling_glm4_moe.py", _mtp),
    SpaceRule("M3", "docs: emit deepspeed", _vision),
    SpaceRule("M4", "deepspeed 0.19.8 runtime/precision_config.py", _precision),
    SpaceRule("M40", "planner.model.traced", _traced_training),
    SpaceRule("M41", "transformers 5 modeling_utils.py (_supports_sdpa of the class)", _traced_attention),
    SpaceRule("M5", "docs: emit deepspeed", _dropout),
)
"""Rules that the model and the workload decide alone."""
