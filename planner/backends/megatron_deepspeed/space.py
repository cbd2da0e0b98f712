"""Which strategies can this software run?

bigscience-workshop/Megatron-DeepSpeed 8387ae17 with DeepSpeed v0.7.7 (2022-12-09).

- Every GPT with ``--deepspeed`` is a PipelineModule, pp = 1 too (pretrain_gpt.py:56-62, megatron/training.py:504-505),
  so ZeRO-2 and 3 never run (deepspeed/runtime/pipe/engine.py:62).  Their use in the authors' other fork
  (microsoft/Megatron-DeepSpeed ``--no-pipeline-parallel``) is plain DeepSpeed: target ``deepspeed``.
- Schedule: TrainSchedule, which is 1F1B, is the only one (deepspeed/runtime/pipe/schedule.py:182).  The flag
  ``--num-layers-per-virtual-pipeline-stage`` is still parsed (megatron/arguments.py:723), but the model must be a
  PipelineEngine (training.py:505): vpp = 1.
- Stages need not be even: ``--pp-partition-method`` (arguments.py:578), default ``type:transformer`` (gpt_model.py:313)
  through partition_balanced (deepspeed/runtime/pipe/module.py:382-387); at least one layer a stage (gpt_model.py:307).
- Recompute: ``--checkpoint-activations`` sets activation_checkpoint_interval (gpt_model.py:292-295, 318): all layers.
  ``--partition-activations`` and ``--checkpoint-in-cpu`` (arguments.py:1070-1075) move only the replayed blocks'
  inputs, for which there is no field.
- Gradients: "Pipeline parallelism does not support overlapped communication" and ZeRO-1 ignores overlap_comm
  (deepspeed/runtime/engine.py:1444-1454).  bf16 runs BF16_Optimizer, states sharded as ZeRO-1 (engine.py:1412), only
  with ``stage: 0`` in the file (pipe/engine.py:254-258): zero_stage = 1 in our words.
- Optimizer offload: ZeRO-1 and up (runtime/zero/config.py:147-149), fp16 only (BF16_Optimizer has none).
- sp, cp, experts: no flag in arguments.py.
- Rank order: axes pipe, data, model, the last one innermost (runtime/pipe/topology.py:246).
- Devices: NVIDIA (CUDA kernels of Megatron); the ROCm fork is not studied.
"""

from __future__ import annotations

from planner.backends.backend import Space
from planner.backends.rules.columns import Columns
from planner.backends.rules.rule import RuleTable

SPACE = Space(
    columns=Columns(
        schedules=("1f1b",),
        sequence_parallel=(False,),
        expert_parallel=False,
        hybrid_sharding=False,
        recompute=("none", "full"),
        cp_kinds=(),
        zero_stages=(0, 1),
        zero_stages_with_pipeline=(0, 1),
        axis_orders=(0,),
        expert_tensor_parallel=False,
        optimizer_offload=True,
        activation_offload=False,
        overlap_ep=(False,),
        overlap_tp=False,
        overlap_data=((False, False),),
        overlap_grad_with_pipeline=False,
        uniform_recompute=True,
        whole_recompute=True,
    ),
    rules=RuleTable("megatron-deepspeed", (), ()),
)
