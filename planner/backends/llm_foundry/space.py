"""The strategies that llm-foundry can run.

mosaicml/llm-foundry v0.3.0 (2023-09-27) on mosaicml (Composer) v0.16.4 (setup.py:50).

- zero: NO_SHARD, SHARD_GRAD_OP, FULL_SHARD and no hybrid one (composer/trainer/mosaic_fsdp_utils.py:36-40).  Composer
  of 2024 adds data_parallel_replicate_degree (composer/utils/parallelism.py:27 at 640518880).
- Recompute: fsdp_config.activation_checkpointing wraps every MPT block (llmfoundry/models/mpt/modeling_mpt.py:619;
  composer/trainer/dist_strategy.py:510-545): all layers or none; no selective one.
- activation_cpu_offload wraps the same blocks (dist_strategy.py:515-525; scripts/train/yamls/pretrain/mpt-7b.yaml:92);
  no published row uses it.
- cpu_offload raises "FSDP CPU Offload not supported yet." (mosaic_fsdp_utils.py:110-115).
- Tensor parallelism: 2024 (llmfoundry/command_utils/train.py:317 at 8c8dd48f7); experts with MegaBlocks likewise
  (models/layers/ffn.py:298): neither in v0.3.0.
- Devices: NVIDIA; AMD MI250 was shown by its authors with attn_impl flash, without a row here.
"""

from __future__ import annotations

from planner.backends.backend import Space
from planner.backends.rules.column_rules import column_rules
from planner.backends.rules.columns import Columns
from planner.backends.rules.fp8_recipes import fp8_recipes
from planner.backends.rules.optimizers import optimizers
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.rule import RuleTable
from planner.backends.rules.token_mixers import decoders_only
from planner.backends.rules.training_kinds import training_kinds

PACKED = packed_sequences("llm-foundry 0.3.0: its sequence ids mask whole sequences, not described here")
OPTIMIZERS = optimizers("llm-foundry 0.3.0 llmfoundry/utils/builders.py:139-152", has=("adam", "lion"))
RECIPES = fp8_recipes("Composer 0.16.4 composer/core/precision.py:71-79", has=("delayed",), own="delayed")
COLUMNS = Columns(
    schedules=("1f1b",),
    tensor_parallel=False,
    sequence_parallel=(False,),
    expert_parallel=False,
    pipeline_parallel=False,
    hybrid_sharding=False,
    recompute=("none", "full"),
    cp_kinds=(),
    zero_stages=(0, 2, 3),
    zero_stages_with_pipeline=(),
    axis_orders=(0,),
    expert_tensor_parallel=False,
    optimizer_offload=False,
    activation_offload=True,
    overlap_ep=(False,),
    overlap_tp=False,
    overlap_data=((True, True),),
    uniform_recompute=True,
    whole_recompute=True,
)
SPACE = Space(
    COLUMNS,
    RuleTable(
        "llm-foundry",
        (
            training_kinds("llm-foundry 0.3.0 scripts/train/train.py: no adapters"),
            PACKED,
            OPTIMIZERS,
            RECIPES,
            decoders_only("llm-foundry 0.3.0 llmfoundry/models/mpt: the model that the physics describes"),
        ),
        column_rules(COLUMNS, "Composer 0.16.4 composer/trainer/mosaic_fsdp_utils.py:36-40, 110-115"),
    ),
)
