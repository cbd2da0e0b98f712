"""``adapter_config.json`` as PEFT reads it, and which plans with adapters the scripts run.

``LoraConfig.from_pretrained`` of peft reads the file (peft 0.19.1 src/peft/config.py, tuners/lora/config.py).  Alpha is
twice the rank and no dropout: neither costs time or memory that the plan counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.backends.rules.foreign_names import foreign_names
from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.errors import DocumentInvalid
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
_AGAIN = "emit the plan again"


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


def adapters_agree(trained: Training | None, files: Mapping[str, str], said_by: str) -> None:
    """``adapter_config.json`` must be there where adapters learn, and say what ``said_by`` says.

    Raises DocumentInvalid.
    """
    text = files.get(ADAPTER_FILE)
    if trained is None or not trained.adapters:
        if text is not None:
            raise DocumentInvalid(f"{said_by} trains no adapters", where=ADAPTER_FILE, hint=_AGAIN)
        return
    if text is None:
        raise DocumentInvalid(f"{ADAPTER_FILE} is missing", where=ADAPTER_FILE, hint=_AGAIN)
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid("not JSON", where=ADAPTER_FILE, hint=_AGAIN) from error
    meant = adapter_config(trained)
    wrong = [name for name in meant if not isinstance(said, dict) or said.get(name) != meant[name]]
    wrong = [name for name in wrong if name not in {"lora_alpha", "lora_dropout", "bias"}]
    if wrong:
        raise DocumentInvalid(f"{', '.join(wrong)}: not as {said_by} says", where=ADAPTER_FILE, hint=_AGAIN)


def _family(given: RuleInput) -> str | None:
    family = given.model.family
    if given.workload.trained.adapters and family not in FAMILIES:
        return f"names of the linear layers of {family} are not known here; known: {', '.join(sorted(FAMILIES))}"
    return None


def _tied_ends(given: RuleInput) -> str | None:
    if given.workload.trained.ends and given.model.tie_embeddings:
        return "modules_to_save would part the tied embedding and output layer; drop ends"
    return None


def _undivided(given: RuleInput) -> str | None:
    s = given.strategy
    degrees = {"tp": s.tp, "cp": s.cp, "pp": s.pp, "ep": s.ep}
    if not given.workload.trained.adapters or max(degrees.values()) == 1:
        return None
    said = ", ".join(f"{name}={size}" for name, size in degrees.items() if size > 1)
    return f"the script adds adapters to the whole model: {said} must be 1"


def _whole_weights(given: RuleInput) -> str | None:
    training = given.workload.trained
    if given.strategy.zero_stage < 3 or not (training.dora or training.ends):
        return None
    what = "DoRA takes norms of" if training.dora else "modules_to_save copies"
    return f"{what} whole weights, which ZeRO-3 holds in parts from the start; use zero_stage 0 to 2"


FAMILY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("L1", "transformers 5 models/*/modeling_*.py", _family),
    SpaceRule("L2", f"{_PEFT} utils/save_and_load.py (tied modules_to_save)", _tied_ends),
)
"""Those that the model and the workload decide alone, for every script that reads the file."""
SCRIPT_RULES: tuple[SpaceRule, ...] = (
    SpaceRule(
        "L4",
        f"{_PEFT} tuners/lora/layer.py: no tensor or context parallelism; docs: emit deepspeed (train_deepspeed.py)",
        _undivided,
        ("tp", "cp", "pp", "ep"),
    ),
    SpaceRule("L7", f"{_PEFT} tuners/lora/dora.py, utils/other.py", _whole_weights, ("zero_stage",)),
)
"""Those of ``train_deepspeed.py``."""
