"""Which strategies can this software run?

NVIDIA-NeMo/Automodel v0.5.0 (2026-06-29), nemo_automodel/components/distributed.

- Degrees: dp_replicate, dp_shard, cp, tp, pp and ep of FSDP2 (mesh_utils.py:189-229; mesh pp outermost, tp innermost);
  ep divides dp x cp x tp (:210-213), experts are split over ep only (moe/parallelizer.py:107): etp = 1.
  dp_replicate < dp (:202-206) and FSDP2 only (:69-74).  DDP (zero 0): tp = pp = cp = ep = 1 (:92-95).
- zero: 3 (default), 2 with reshard_after_forward=False (config.py:185).  With a pipeline the weights stay gathered and
  gradients are synchronized at the last micro-batch (parallelizer.py:1036-1043, config.py:184): zero_stage 1 in our
  words, as torchtitan's rule Z1.
- Schedules: names go to torch's get_schedule_class (pipelining/functional.py:492, 644); only ZBV is placed in a V
  (:645), so DualPipeV is not one of them.
- sp: sequence_parallel of the tp plan (config.py:153, 207); overlap_tp: enable_async_tensor_parallel needs it
  (config.py:189-193).
- cp: torch's context parallelism with all-gather rotation (cp_utils.py:356), or Transformer Engine's ring.
- Recompute: activation_checkpointing False, True (all blocks) or "selective" (by operator) (config.py:181-183).
- offload_policy is CPUOffloadPolicy: parameters too (config.py:175).
- Megatron-FSDP strategy: pp = ep = 1 (mesh_utils.py:83-84), not described here.
- Devices: NVIDIA.
"""

from __future__ import annotations

from planner.backends.backend import Space
from planner.backends.rules.columns import Columns
from planner.backends.rules.rule import RuleTable

SPACE = Space(
    columns=Columns(
        schedules=("1f1b", "gpipe", "interleaved", "looped_bfs", "interleaved_zb", "zbv"),
        group_factors=(1,),
        cp_kinds=("ring",),
        zero_stages=(0, 2, 3),
        zero_stages_with_pipeline=(1,),
        axis_orders=(0,),
        expert_tensor_parallel=False,
        optimizer_offload=False,
        activation_offload=False,
        overlap_ep=(False,),
        overlap_tp=True,
        overlap_data=((True, True),),
        overlap_grad_with_pipeline=False,
        uniform_recompute=True,
        whole_recompute=True,
    ),
    rules=RuleTable("nemo-automodel", (), ()),
)
