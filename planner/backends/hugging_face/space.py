"""The strategies that the transformers Trainer runs without FSDP and DeepSpeed.

One process a device under torch's DistributedDataParallel (transformers Trainer without FSDP and DeepSpeed; with
them the back-end is accelerate).  DDP overlaps bucketed all-reduce with the backward pass and gathers nothing
(torch 2.13 nn/parallel/distributed.py); gradient_checkpointing replays every layer.  Devices: NVIDIA, AMD.
"""

from __future__ import annotations

from planner.backends.backend import Space
from planner.backends.rules.column_rules import column_rules
from planner.backends.rules.columns import Columns
from planner.backends.rules.fp8_recipes import fp8_recipes
from planner.backends.rules.optimizers import optimizers
from planner.backends.rules.packed_sequences import BOTH, packed_sequences
from planner.backends.rules.rule import RuleTable
from planner.backends.rules.training_kinds import EVERY_BASE, EVERY_TASK, training_kinds

COLUMNS = Columns(
    schedules=("1f1b",),
    tensor_parallel=False,
    sequence_parallel=(False,),
    expert_parallel=False,
    pipeline_parallel=False,
    hybrid_sharding=False,
    recompute=("none", "full"),
    cp_kinds=(),
    zero_stages=(0,),
    zero_stages_with_pipeline=(),
    axis_orders=(0,),
    expert_tensor_parallel=False,
    optimizer_offload=False,
    activation_offload=False,
    overlap_ep=(False,),
    overlap_tp=False,
    overlap_data=((True, False),),
    uniform_recompute=True,
    whole_recompute=True,
)
OPTIMIZERS = optimizers(
    "transformers 5.23 training_args.py:113-158", has=("adam", "sgd", "adam_8bit", "adafactor", "lion")
)
RECIPES = fp8_recipes("transformers 5.23 training_args.py: bf16 and fp16; fp8 is accelerate's", has=())
SPACE = Space(
    COLUMNS,
    RuleTable(
        "hugging-face",
        (
            training_kinds(
                "peft tuners/lora; trl DPOTrainer, ORPOTrainer, RewardTrainer; torch Tensor.requires_grad_ of a tower",
                bases=EVERY_BASE,
                tasks=EVERY_TASK,
                freezes_towers=True,
            ),
            packed_sequences("trl f2cd5771 trl/data_utils.py:739, 829", packings=BOTH),
            OPTIMIZERS,
            RECIPES,
        ),
        column_rules(COLUMNS, "torch 2.13 nn/parallel/distributed.py; transformers Trainer"),
    ),
)
