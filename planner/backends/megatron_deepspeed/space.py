"""The strategies that Megatron-DeepSpeed of 2022 can run.

bigscience-workshop/Megatron-DeepSpeed 8387ae17 with DeepSpeed v0.7.7 (2022-12-09).

- Every GPT with ``--deepspeed`` is a PipelineModule, pp = 1 too (pretrain_gpt.py:56-62, megatron/training.py:504-505),
  so ZeRO-2 and 3 never run (deepspeed/runtime/pipe/engine.py:62).  Their use in the authors' other fork
  (microsoft/Megatron-DeepSpeed ``--no-pipeline-parallel``) is plain DeepSpeed: back-end ``deepspeed``.
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
- Models: as Megatron-LM 2.5, and ALiBi or rotary positions (arguments.py:398), gated MLPs (:403), a norm after the
  embedding (:386).

Letters as in ``megatron.space_2021``; D DeepSpeed.
"""

from __future__ import annotations

from planner.backends.backend import Space
from planner.backends.megatron.model_rules_2021 import Builds, model_rules
from planner.backends.megatron.space_2021 import (
    chunks_in_place,
    no_flag,
    optimizer,
    spelled,
    stages_outermost,
    whole_recompute,
    widths,
)
from planner.backends.rules.columns import Columns
from planner.backends.rules.divisibility import exact_batch, heads, positions
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule
from planner.backends.rules.training_kinds import training_kinds

_FORK = "bigscience-workshop/Megatron-DeepSpeed 8387ae17 megatron"
_ENGINE = "DeepSpeed v0.7.7 deepspeed/runtime"


def _precision(given: RuleInput) -> str | None:
    return "there is no fp8 training; use precision fp16 or bf16" if given.workload.precision == "fp8" else None


def _schedule(given: RuleInput) -> str | None:
    s = given.strategy
    if s.schedule != "1f1b" or s.vpp > 1:
        return f"the pipeline engine runs 1f1b with vpp=1 only, not {s.schedule} with vpp={s.vpp}"
    return None


def _stages(given: RuleInput) -> str | None:
    s, layers = given.strategy, given.layers_per_chunk
    if s.pp > given.model.num_layers or (layers is not None and min(layers) < 1):
        return "every stage needs a transformer layer"
    return None


def _zero(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage > 1:
        return f"every model is a PipelineModule, which zero_stage {s.zero_stage} does not run; use 0 or 1"
    if given.workload.precision == "bf16" and s.zero_stage == 0 and s.dp > 1:
        return "bf16 runs BF16_Optimizer, which shards its states: zero_stage must be 1"
    return "states are sharded over all data-parallel ranks: dp_replicate must be 1" if s.dp_replicate > 1 else None


def _offload(given: RuleInput) -> str | None:
    s, workload = given.strategy, given.workload
    if not s.optimizer_offload:
        return None
    if s.zero_stage == 0:
        return "optimizer offload belongs to ZeRO: zero_stage must be 1"
    if workload.precision != "fp16":
        return f"BF16_Optimizer offloads nothing: optimizer offload needs precision fp16, not {workload.precision}"
    return None


def _overlap(given: RuleInput) -> str | None:
    if given.strategy.overlap_grad_reduce:
        return "pipeline engine and ZeRO-1 reduce gradients behind the backward passes: overlap_grad_reduce must be off"
    return None


PROBLEM_RULES: tuple[SpaceRule, ...] = (
    training_kinds("Megatron-DeepSpeed megatron/arguments.py: no flag says it"),
    packed_sequences("Megatron-DeepSpeed megatron/arguments.py: --reset-attention-mask masks all pairs of a sequence"),
    SpaceRule("A3", f"{_FORK}/arguments.py:257-262", positions),
    SpaceRule("W1", f"{_FORK}/arguments.py:170-190", _precision),
    SpaceRule("W2", f"{_FORK}/arguments.py:552", optimizer),
)
"""Those that no strategy mends, as the model's."""
MODEL_RULES = model_rules(
    f"{_FORK}/arguments.py: no flag says it",
    Builds(positions=frozenset({"learned", "rope", "alibi"}), gated=True, embedding_norm=True),
)
STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("A1", f"{_FORK}/microbatches.py", exact_batch(), ("micro_batch_size", "num_microbatches", "dp")),
    SpaceRule("S1", f"{_ENGINE}/pipe/schedule.py:182", _schedule, ("schedule", "vpp")),
    SpaceRule("T1", f"{_FORK}/model/gpt_model.py:307", _stages, ("pp",)),
    SpaceRule("T2", f"{_FORK}/model/transformer.py:145-150", heads, ("tp",)),
    SpaceRule("T3", f"{_FORK}/mpu/layers.py", widths, ("tp",)),
    SpaceRule("T4", f"{_ENGINE}/pipe/topology.py:246", stages_outermost, ("axis_order",)),
    SpaceRule("T5", f"{_ENGINE}/pipe/module.py:382-387", chunks_in_place, ("pp", "vpp")),
    SpaceRule("A5", f"{_FORK}/model/gpt_model.py:292-295, 318", whole_recompute, ("recompute",)),
    SpaceRule("D1", f"{_ENGINE}/pipe/engine.py:62, 254-258", _zero, ("zero_stage", "dp_replicate")),
    SpaceRule(
        "D2", f"{_ENGINE}/zero/config.py:147-149, bf16_optimizer.py", _offload, ("optimizer_offload", "zero_stage")
    ),
    SpaceRule("D3", f"{_ENGINE}/engine.py:1444-1454", _overlap, ("overlap_grad_reduce",)),
    *no_flag(f"{_FORK}/arguments.py: no flag says it", allowed=("zero_stage", "optimizer_offload")),
)

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
    rules=RuleTable("megatron-deepspeed", (*PROBLEM_RULES, *MODEL_RULES), STRATEGY_RULES),
    spelled=spelled,
)
