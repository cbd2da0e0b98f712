"""The strategies that Megatron-Bridge 0.6.2 refuses: Megatron-core's rules (same ids), and Bridge's own (X).

Bridge's ``ConfigContainer.validate`` repeats core's arithmetic (world 1024, sequence 1436, batch 1335); those rules
are core's here.  What Megatron-LM's ``validate_args`` enforces and Bridge does not is kept: core needs it at the first
step.  One is left out, A9 (parameters gathered beside the forward pass only where gradients are reduced beside the
backward pass): core's buckets do not ask for it, and NVIDIA's recipes of DeepSeek-V3 on H100 are so (0.6.0
perf_recipes/deepseek/h100/deepseek_v3.py:45-51).
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.backend import Space
from planner.backends.megatron.model_rules import MODEL_RULES
from planner.backends.megatron.optimizer_rules import EMERGING
from planner.backends.megatron.space import PROBLEM_RULES as CORE_PROBLEM_RULES
from planner.backends.megatron.space import SPACE as CORE_SPACE
from planner.backends.megatron.space import STRATEGY_RULES as CORE_RULES
from planner.backends.megatron.token_mixers import way
from planner.backends.megatron_bridge.adapters import QUESTION_RULES as ADAPTER_QUESTION_RULES
from planner.backends.megatron_bridge.adapters import STRATEGY_RULES as ADAPTER_RULES
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule
from planner.backends.rules.training_kinds import SIXTEEN_BIT, training_kinds

_CONFIG = "megatron-bridge 0.6.2 training/config.py"


def _fsdp_order(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage >= 2 and s.axis_order == "tp-cp-ep-pp-dp":
        return "Megatron-FSDP (zero_stage 2 and 3) refuses the axis order tp-cp-ep-pp-dp; use tp-cp-ep-dp-pp"
    return None


def _positions(given: RuleInput) -> str | None:
    rows, tokens = given.model.learned_positions, given.workload.sequence_length
    if rows and rows != tokens:
        return f"Bridge makes as many learned positions as a sample has tokens ({tokens}); the model has {rows}"
    return None


def _hybrid_chunks(given: RuleInput) -> str | None:
    if given.strategy.vpp > 1 and way(given.model) == "pattern":
        return "Bridge's provider of hybrid patterns builds no virtual stages: vpp=1"
    return None


def _layer_wise(given: RuleInput) -> str | None:
    name = given.workload.optimizer
    if name in EMERGING and given.strategy.zero_stage >= 1:
        return (
            f"under {name} the files name no optimizer that deals its states out (Bridge's dist_muon): use zero_stage 0"
        )
    return None


PROBLEM_RULES: tuple[SpaceRule, ...] = (
    *CORE_PROBLEM_RULES,
    SpaceRule("X2", "megatron-bridge 0.6.2 models/gpt_provider.py (max_sequence_length=self.seq_length)", _positions),
)
"""Those that no strategy mends, as the model's."""
STRATEGY_RULES: tuple[SpaceRule, ...] = (
    *(rule for rule in CORE_RULES if rule.id != "A9"),
    SpaceRule("X1", f"{_CONFIG}:1116", _fsdp_order, ("axis_order", "zero_stage")),
    SpaceRule("X3", "megatron-bridge 0.6.2 models/hybrid/hybrid_provider.py (provide)", _hybrid_chunks, ("vpp",)),
    SpaceRule("M45", "megatron-bridge 0.6.0 training/optim.py:95-111", _layer_wise, ("zero_stage",)),
    *ADAPTER_RULES,
)
KINDS = training_kinds(
    "megatron-bridge 0.6.2 peft/canonical_lora.py, peft/dora.py",
    bases=SIXTEEN_BIT,
    instead="name --backend accelerate",
)
PACKED = packed_sequences(
    "megatron-bridge 0.6.2 data/packing/algorithms.py:27 packs real data; the emitted recipe has mock data",
    instead="name --backend megatron, torchtitan or maxtext",
)
QUESTION_RULES = (*PROBLEM_RULES, KINDS, PACKED, *ADAPTER_QUESTION_RULES)
TABLE = RuleTable("megatron-bridge", (*QUESTION_RULES, *MODEL_RULES), STRATEGY_RULES)
SPACE = Space(CORE_SPACE.columns, TABLE, CORE_SPACE.spelled, CORE_SPACE.dispatcher)
PREDICTED_SPACE = replace(
    SPACE,
    columns=replace(CORE_SPACE.columns, fp8_parameters=False),
    rules=RuleTable("megatron-bridge", QUESTION_RULES, STRATEGY_RULES),
)
"""The same for releases that no files are written for: models that its providers build and our files cannot say.  That
weights are gathered in 8 bit is in the recipes' physics."""
