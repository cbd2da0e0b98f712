"""``adapter_config.json`` as PEFT reads it, and which plans with adapters or pairs the script runs.

``LoraConfig.from_pretrained`` of peft reads the file (peft 0.19.1 src/peft/config.py, tuners/lora/config.py).  Alpha is
twice the rank and no dropout: neither costs time or memory that the plan counts.
"""

from __future__ import annotations

import json
from typing import Any

from planner.backends.accelerate.way import WAY_FIELDS, way
from planner.backends.rules.foreign_names import foreign_names
from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.question.training import AdapterTarget, Training

ADAPTER_FILE = "adapter_config.json"
PEFT_VERSION = "0.19.1"
MODULES: dict[AdapterTarget, str] = {
    "q": "q_proj",
    "k": "k_proj",
    "v": "v_proj",
    "o": "o_proj",
    "gate": "gate_proj",
    "up": "up_proj",
    "down": "down_proj",
}
"""Target -> suffix of the module's name in the families below."""
FAMILIES = frozenset(
    foreign_names("""
    llama mistral ministral qwen2 qwen3 qwen2_moe qwen3_moe mixtral gemma gemma2 gemma3_text olmo olmo2 olmo3 smollm3
    granite seed_oss cohere cohere2 stablelm
    """)
)
"""Families whose linear layers have these names (transformers 5, models/*/modeling_*.py)."""
ENDS = ["embed_tokens", "lm_head"]
_PEFT = f"peft {PEFT_VERSION}"


def adapter_config(training: Training) -> dict[str, Any]:
    """The document of a plan with adapters."""
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": training.rank,
        "lora_alpha": 2 * training.rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": [MODULES[target] for target in training.targets],
        "modules_to_save": ENDS if training.ends else None,
        "use_dora": training.dora,
    }


def adapter_text(training: Training) -> str:
    """The file."""
    return json.dumps(adapter_config(training), indent=1) + "\n"


def _family(given: RuleInput) -> str | None:
    family = given.model.family
    if given.workload.trained.adapters and family not in FAMILIES:
        return f"names of the linear layers of {family} are not known here; known: {', '.join(sorted(FAMILIES))}"
    return None


def _tied_ends(given: RuleInput) -> str | None:
    if given.workload.trained.ends and given.model.tie_embeddings:
        return "modules_to_save would part the tied embedding and output layer; drop ends"
    return None


def _reference(given: RuleInput) -> str | None:
    if given.workload.trained.reference_at == "offloaded":
        return "the script keeps the reference on the devices; use reference shared, resident or precomputed"
    return None


def _model_axes(given: RuleInput) -> str | None:
    training, s = given.workload.trained, given.strategy
    if s.tp * s.cp == 1 or not (training.adapters or training.sequences_per_sample > 1):
        return None
    return f"adapters and pairs are not split over tp={s.tp} and cp={s.cp}: both must be 1"


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
    SpaceRule("L1", "transformers 5 models/*/modeling_*.py", _family),
    SpaceRule("L2", f"{_PEFT} utils/save_and_load.py (tied modules_to_save)", _tied_ends),
    SpaceRule("L3", "docs: emit accelerate (train_accelerate.py)", _reference),
)
STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("L4", f"{_PEFT} tuners/lora/layer.py: no tensor or context parallelism", _model_axes, ("tp", "cp")),
    SpaceRule("L5", f"{_PEFT} docs/source/accelerate/fsdp.md: 4-bit only", _eight_bit, ("zero_stage",)),
    SpaceRule("L6", "docs: emit accelerate (train_accelerate.py)", _sharded_reference, WAY_FIELDS),
)
