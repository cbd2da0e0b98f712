"""Which plans with adapters or pairs ``train_accelerate.py`` runs; ``adapter_config.json`` itself: ``deepspeed``."""

from __future__ import annotations

from planner.backends.accelerate.way import WAY_FIELDS, way
from planner.backends.deepspeed.adapters import FAMILY_RULES, PEFT_VERSION
from planner.backends.rules.rule import RuleInput, SpaceRule

_PEFT = f"peft {PEFT_VERSION}"


def _reference(given: RuleInput) -> str | None:
    if given.workload.trained.reference_at == "offloaded":
        return "the script keeps the reference on the devices; use reference shared, resident or precomputed"
    return None


def _model_axes(given: RuleInput) -> str | None:
    training, s = given.workload.trained, given.strategy
    if s.cp == 1 or not (training.adapters or training.sequences_per_sample > 1):
        return None
    return f"adapters and pairs are not split over cp={s.cp}: it must be 1"


def _eight_bit(given: RuleInput) -> str | None:
    if given.workload.trained.stored == "int8" and given.strategy.zero_stage >= 2:
        return "8-bit weights of bitsandbytes are not sharded; use zero_stage 0 or 1, or base nf4"
    return None


def _sharded_reference(given: RuleInput) -> str | None:
    resident = given.workload.trained.reference_at == "resident"
    if resident and way(given.strategy) == "DEEPSPEED" and given.strategy.zero_stage == 3:
        return "the script shards a resident reference through FSDP2 only; without optimizer_offload"
    return None


QUESTION_RULES: tuple[SpaceRule, ...] = (
    *FAMILY_RULES,
    SpaceRule("L3", "docs: emit accelerate (train_accelerate.py)", _reference),
)
STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("L4", f"{_PEFT} tuners/lora/layer.py: no context parallelism", _model_axes, ("cp",)),
    SpaceRule("L5", f"{_PEFT} docs/source/accelerate/fsdp.md: 4-bit only", _eight_bit, ("zero_stage",)),
    SpaceRule("L6", "docs: emit accelerate (train_accelerate.py)", _sharded_reference, WAY_FIELDS),
)
