"""The strategies that NeMo could run before 2.3.0, which came with 25.04.

As ``space``, but for:

- FSDP of Megatron-Core: since 2.3.0 ("Custom FSDP support", NVIDIA-NeMo/NeMo@8cfedd72 CHANGELOG.md:470).  What stood
  before it was PyTorch's FSDP around models of NeMo 1: no 8 bit
  (nlp/models/language_modeling/megatron_base_model.py, _validate_and_override_config) and no pipeline
  (nlp/parts/nlp_overrides.py, NLPFSDPStrategy.setup_environment); its time was not studied and it is not offered.
- Dispatch: DeepEP came to Megatron-Core on 25 February 2025 (NVIDIA/Megatron-LM@0d389f5e99), after the branches of
  24.12 and 25.02: all-to-all.
- Recompute: sets of modules came on 5 April 2025 (NVIDIA/Megatron-LM@3b141a2471); selective recompute replays the core
  of attention.
- Experts' tensor parallelism: its own since 2.2.0 (CHANGELOG.md:850, pull request 11880); before, that of the layer.
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.backend import Space
from planner.backends.nemo.space import COLUMNS, EARLY_OPTIMIZERS, OPTIMIZERS, RULES_OF_QUESTION, TENSOR_OVERLAP
from planner.backends.rules.column_rules import column_rules
from planner.backends.rules.columns import Columns
from planner.backends.rules.rule import RuleTable

COLUMNS_2_2 = replace(
    COLUMNS,
    zero_stages=(0, 1),
    zero_stages_with_pipeline=(0, 1),
    hybrid_zero_stages=(1,),
    dispatchers=("alltoall",),
    selective_modules=("attention_core",),
)
COLUMNS_2_1 = replace(COLUMNS_2_2, expert_tensor="tp")


def _space(columns: Columns, version: str) -> Space:
    rules = column_rules(columns, f"NeMo {version} and its Megatron-Core: planner.backends.nemo.space_early")
    questions = tuple(EARLY_OPTIMIZERS if each is OPTIMIZERS else each for each in RULES_OF_QUESTION)
    return Space(columns, RuleTable("nemo", questions, (TENSOR_OVERLAP, *rules)))


SPACE_2_2 = _space(COLUMNS_2_2, "v2.2.0")
SPACE_2_1 = _space(COLUMNS_2_1, "v2.1.0")
