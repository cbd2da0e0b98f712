"""The models that ``pretrain_gpt.py`` of Megatron-LM core_v0.12.1 cannot build from flags.

All that 0.19.2 cannot build (``megatron.model_rules``), and what came after 0.12.1.
"""

from __future__ import annotations

from planner.backends.megatron.model_rules import MODEL_RULES as LATER_RULES
from planner.backends.megatron.model_rules import linear_biases
from planner.backends.rules.rule import RuleInput, SpaceRule, mixtures, used_kinds
from planner.backends.rules.token_mixers import beyond_attention

_FLAGS = "Megatron-LM core_v0.12.1 megatron/training/arguments.py: no flag says it"
_CONFIG = "megatron-core 0.12.1 core/transformer/transformer_config.py"


def _sinks(given: RuleInput) -> str | None:
    return "attention sinks" if any(kind.attention.sinks for kind in used_kinds(given.model)) else None


def _windows(given: RuleInput) -> str | None:
    windowed = any(kind.attention.sliding_window for kind in used_kinds(given.model))
    return "sliding windows (MindSpeed's flash attention takes the causal mask only)" if windowed else None


def _activation(given: RuleInput) -> str | None:
    return "clamped GEGLU experts" if given.model.family == "gpt_oss" else None


def _shared_gate(given: RuleInput) -> str | None:
    return "a gate on the shared expert" if any(moe.shared_gate for moe in mixtures(given.model)) else None


def _expert_bias(given: RuleInput) -> str | None:
    biased = mixtures(given.model) and any(True in linear_biases(kind) for kind in used_kinds(given.model))
    return "linear layers with bias in a model with experts" if biased else None


def _mtp_positions(given: RuleInput) -> str | None:
    model = given.model
    return "MTP layers with learned positions" if model.mtp and model.learned_positions else None


def _mixers(given: RuleInput) -> str | None:
    return beyond_attention(given.model)


_CHECKS = {
    "M13": (_sinks, _FLAGS),
    "M14": (_windows, "MindSpeed core_r0.12.1 features_manager/transformer/flash_attention (sparse modes 0 and 2)"),
    "M15": (_activation, _FLAGS),
    "M16": (_shared_gate, _FLAGS),
    "M17": (_expert_bias, f"{_CONFIG}:946"),
    "M21": (_mixers, f"{_FLAGS} for training on Ascend"),
    "M18": (_mtp_positions, "Megatron-LM core_v0.12.1 megatron/training/arguments.py validate_args"),
}


def _rule(rule_id: str) -> SpaceRule:
    inner, source = _CHECKS[rule_id]

    def check(given: RuleInput) -> str | None:
        message = inner(given)
        return None if message is None else f"Megatron-LM core_v0.12.1 cannot build {message}; name another --backend"

    return SpaceRule(rule_id, source, check)


MODEL_RULES: tuple[SpaceRule, ...] = (
    *(SpaceRule(rule.id, _FLAGS, rule.check) for rule in LATER_RULES),
    *(_rule(rule_id) for rule_id in _CHECKS),
)
