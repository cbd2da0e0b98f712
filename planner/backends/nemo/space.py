"""The strategies that NeMo can run.

NVIDIA/NeMo v2.4.0 on Megatron-Core, nemo/lightning/pytorch/strategies/megatron_strategy.py.

- Degrees tp, pp, vpp, cp, sp, ep, etp (lines 237-249), micro-batch group (:307), uneven ends and layout (:240-241,
  :286), use_tp_pp_dp_mapping (:282), num_distributed_optimizer_instances (:283): the columns of Megatron-Core.
- vpp up to 24 is in use (scripts/performance/recommended_model_configs: vp_size 2, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24).
- FSDP: ``fsdp="megatron"`` (:371-377) with data_parallel_sharding_strategy optim_grads_params
  (scripts/performance/helpers.py:180-184); "PyTorch FSDP2 is not supported" (:373).
- Recompute: first N layers of each chunk (helpers.py:251-254), or modules (:263-267); offload of N layers'
  activations (helpers.py:257-260).
- overlap_tp with sp and tp > 1 only (callbacks/megatron_comm_overlap.py:141-151); gradients and weights overlap where
  dp > 1 (:185-188), weights not with mxfp8 (helpers.py:229-233).
- overlap_ep and optimizer offload: no word of either in v2.4.0 (nemo/, scripts/); Megatron-Bridge has both.
- cp kinds: ring is Megatron-Core's default; all_to_all is set by a model (collections/llm/gpt/model/mistral.py:63).
- Dispatch: recipes with ``DeepEPCallback`` (callbacks/deepep.py:50), else the model's own: all-to-all in mixtral.py:63,
  qwen3.py:64, deepseek.py:91, Megatron-Core's all-gather elsewhere.
- Devices: NVIDIA.
"""

from __future__ import annotations

from planner.backends.backend import Space
from planner.backends.rules.column_rules import column_rules
from planner.backends.rules.columns import Columns
from planner.backends.rules.fp8_recipes import EIGHT_BIT, fp8_recipes
from planner.backends.rules.optimizers import optimizers
from planner.backends.rules.packed_sequences import GREEDY, packed_sequences
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule
from planner.backends.rules.token_mixers import decoders_only
from planner.backends.rules.training_kinds import SIXTEEN_BIT, training_kinds


def _tensor_overlap(given: RuleInput) -> str | None:
    s = given.strategy
    return "overlap_tp needs sp" if s.overlap_tp and s.tp > 1 and not s.sp else None


COLUMNS = Columns(
    schedules=("1f1b", "interleaved"),
    zero_stages=(0, 1, 2, 3),
    zero_stages_with_pipeline=(0, 1, 2, 3),
    optimizer_offload=False,
    overlap_ep=(False,),
    dispatchers=("deepep", "alltoall", "allgather"),
    overlap_data=((True, True), (True, False)),
    uniform_recompute=True,
)
TENSOR_OVERLAP = SpaceRule(
    "T1", "NeMo v2.4.0 callbacks/megatron_comm_overlap.py:141-151", _tensor_overlap, ("overlap_tp", "sp")
)
RULES: tuple[SpaceRule, ...] = (
    TENSOR_OVERLAP,
    *column_rules(
        COLUMNS,
        "NeMo v2.4.0 nemo/lightning/pytorch/strategies/megatron_strategy.py:237-283, scripts/performance/helpers.py",
    ),
)
KINDS = training_kinds("NeMo v2.4.0 nemo/collections/llm/peft/lora.py", bases=SIXTEEN_BIT)
PACKED = packed_sequences("NeMo 8cfedd72 nemo/utils/sequence_packing_utils.py:23", packings=GREEDY)
EARLY_OPTIMIZERS = optimizers(
    "megatron-core 0.14 core/optimizer/optimizer_config.py: adam and sgd", has=("adam", "adam_bf16_states", "sgd")
)
OPTIMIZERS = optimizers(
    "NeMo v2.4.0 scripts/performance/helpers.py:206: use_precision_aware_optimizer, core/optimizer/optimizer_config.py",
    has=("adam", "adam_bf16_states", "adam_precision_aware", "sgd"),
)
DECODERS = decoders_only("NeMo v2.4.0 nemo/collections/llm/gpt: the models that the physics describes")
RECIPES = fp8_recipes("NeMo v2.4.0 scripts/performance/helpers.py: fp8_recipe", has=EIGHT_BIT)
RULES_OF_QUESTION = (KINDS, PACKED, OPTIMIZERS, DECODERS, RECIPES)
SPACE = Space(COLUMNS, RuleTable("nemo", RULES_OF_QUESTION, RULES), dispatcher=lambda _given: "deepep")
