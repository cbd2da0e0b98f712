"""The strategies that PyTorch's FSDP can run.

torch.distributed.fsdp: ShardingStrategy NO_SHARD 0, SHARD_GRAD_OP 2, FULL_SHARD 3, HYBRID_SHARD = 3 with
dp_replicate, _HYBRID_SHARD_ZERO2 = 2 with dp_replicate (torch 2.13 distributed/fsdp/api.py, class ShardingStrategy);
as foundation-model-stack/fms-fsdp chooses among them (fms_fsdp/utils/train_utils.py:227-234: fsdp, hsdp, ddp).

- Recompute: every 1/p-th block whole (fms_fsdp/policies/ac_handler.py:18-63; its README calls that "Selective AC"), so
  full recompute of a part of the layers is inside: ``whole_recompute=False``.  Per-operator selective recompute is
  torch's own (``operator_checkpointing`` of the traits).
- Overlap: pre-fetch of the next unit and reduce-scatter behind the backward pass are always on: (True, True).
- CPUOffload moves parameters, gradients and states together (torch fsdp/api.py, CPUOffload): not our
  optimizer_offload.
- One axis: no tp, cp, ep, pp in a plain FSDP trainer (torchtitan, native, accelerate and nemo-automodel have them).
- Devices: NVIDIA, AMD (ROCm builds of torch); other vendors through their own packages, not studied.
"""

from __future__ import annotations

from planner.backends.backend import Space
from planner.backends.rules.column_rules import column_rules
from planner.backends.rules.columns import Columns
from planner.backends.rules.fp8_recipes import fp8_recipes
from planner.backends.rules.optimizers import optimizers
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.rule import RuleTable
from planner.backends.rules.training_kinds import SIXTEEN_OR_FOUR_BIT, training_kinds

PACKED = packed_sequences("torch 2.13 distributed/fsdp: it feeds no data; use hugging-face")
OPTIMIZERS = optimizers(
    "torch 2.13 optim on flat shards: adamw.py, sgd.py; _adafactor.py and _muon.py take whole matrices",
    has=("adam", "sgd"),
)
RECIPES = fp8_recipes("torchao 0.18 float8/config.py: Float8LinearRecipeName", has=("tensorwise",))
COLUMNS = Columns(
    schedules=("1f1b",),
    tensor_parallel=False,
    sequence_parallel=(False,),
    expert_parallel=False,
    pipeline_parallel=False,
    recompute=("none", "selective", "full"),
    cp_kinds=(),
    zero_stages=(0, 2, 3),
    zero_stages_with_pipeline=(),
    axis_orders=(0,),
    expert_tensor_parallel=False,
    optimizer_offload=False,
    activation_offload=False,
    overlap_ep=(False,),
    overlap_tp=False,
    overlap_data=((True, True),),
    uniform_recompute=True,
    hybrid_zero_stages=(2, 3),
)
SPACE = Space(
    COLUMNS,
    RuleTable(
        "pytorch-fsdp",
        (
            training_kinds(
                "peft 0.17 tuners/lora; AnswerDotAI/fsdp_qlora train.py; torch Tensor.requires_grad_ of a tower",
                bases=SIXTEEN_OR_FOUR_BIT,
                freezes_towers=True,
            ),
            PACKED,
            OPTIMIZERS,
            RECIPES,
        ),
        column_rules(COLUMNS, "torch 2.13 distributed/fsdp/api.py: ShardingStrategy"),
    ),
)
