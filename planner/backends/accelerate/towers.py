"""Which models behind a vision tower ``train_accelerate.py`` trains, and which samples it feeds them."""

from __future__ import annotations

from planner.backends.deepspeed.vision_config import TEXT_FAMILIES
from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.model.mixers.kinds import FED

_ALONE = "plan the language model alone, or ask `meshwright towers` where the tower stands best"


def fed(given: RuleInput) -> str | None:
    """What the script feeds beside tokens: whole numbers of images, the same for every sample."""
    model, work = given.model, given.workload
    if not model.towers:
        return None
    tower = model.vision
    if tower is None or len(model.towers) > 1 or model.family not in TEXT_FAMILIES:
        others = " and no ".join(FED[each.modality] for each in model.towers)
        return f"the script feeds no {others} to {model.family}, only images to {', '.join(TEXT_FAMILIES)}; {_ALONE}"
    if work.trained.adapters or work.trained.task != "language_model":
        return "behind a tower the script trains all weights by the loss of the language model"
    images, length = work.images_per_sample, work.sequence_length
    if work.image_counts is not None or images < 1:
        return "the script feeds every sample the same number of images, at least one: say it with --images N"
    if images * (tower.tokens_per_image + 1) > length:
        needs = f"{images} images of {tower.tokens_per_image:,} tokens and a token between them"
        return f"{needs} do not fit a sample of {length:,}; use fewer images or longer samples"
    return None


def _sequence(given: RuleInput) -> str | None:
    if given.model.towers and given.strategy.cp > 1:
        return "context parallelism would cut the marks of an image from its features: cp must be 1 behind a tower"
    return None


FED_ITEMS = SpaceRule("M3", "docs: emit accelerate (train_accelerate.py)", fed)
STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule(
        "A20",
        "transformers 5.23 models/qwen2_5_vl/modeling_qwen2_5_vl.py (get_placeholder_mask counts marks and features)",
        _sequence,
        ("cp",),
    ),
)
