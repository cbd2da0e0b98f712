"""The strategies that NeMo Automodel can run.

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
from planner.backends.rules.column_rules import column_rules
from planner.backends.rules.columns import Columns
from planner.backends.rules.fp8_recipes import fp8_recipes
from planner.backends.rules.optimizers import optimizers
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.pipeline import microbatches
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule
from planner.backends.rules.token_mixers import decoders_only
from planner.backends.rules.training_kinds import SIXTEEN_OR_FOUR_BIT, training_kinds


def _plain_data_parallel(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage == 0 and s.pp == 1 and s.tp * s.cp * s.ep > 1:
        return "DDP (zero_stage 0) runs alone: tp, cp and ep must be 1"
    return None


def _replicas(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage and s.dp_replicate > 1 and s.dp_shard == 1:
        return f"dp_replicate={s.dp_replicate} must be below dp={s.dp}"
    return None


def _expert_grid(given: RuleInput) -> str | None:
    s = given.strategy
    block = s.dp * s.cp * s.tp
    return f"ep={s.ep} does not divide dp x cp x tp = {block}" if block % s.ep else None


def _tensor_overlap(given: RuleInput) -> str | None:
    s = given.strategy
    return "overlap_tp needs sp" if s.overlap_tp and s.tp > 1 and not s.sp else None


COLUMNS = Columns(
    schedules=("1f1b", "gpipe", "interleaved", "looped_bfs", "interleaved_zb", "zbv"),
    derived_group=True,
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
)
RULES: tuple[SpaceRule, ...] = (
    SpaceRule("D1", "Automodel v0.5.0 mesh_utils.py:92-95", _plain_data_parallel, ("zero_stage", "tp", "cp", "ep")),
    SpaceRule("D2", "Automodel v0.5.0 mesh_utils.py:202-206", _replicas, ("dp_replicate", "dp_shard")),
    SpaceRule("E1", "Automodel v0.5.0 mesh_utils.py:210-213", _expert_grid, ("ep", "dp_shard", "cp", "tp")),
    SpaceRule("T1", "Automodel v0.5.0 config.py:189-193", _tensor_overlap, ("overlap_tp", "sp")),
    SpaceRule(
        "P1",
        "torch 2.13.0 distributed/pipelining/schedules.py:1021 (1F1B)",
        microbatches,
        ("num_microbatches", "micro_batch_size", "pp", "schedule"),
    ),
    *column_rules(COLUMNS, "Automodel v0.5.0 components/distributed/mesh_utils.py:189-229, config.py:153-207"),
)
KINDS = training_kinds(
    "Automodel v0.5.0 components/_peft/lora.py, components/quantization/qlora.py", bases=SIXTEEN_OR_FOUR_BIT
)
PACKED = packed_sequences("Automodel v0.5.0: its packing is not described here")
OPTIMIZERS = optimizers("Automodel v0.5.0 components/optim/optimizer.py:135-301, 347", has=("adam", "sgd", "muon"))
RECIPES = fp8_recipes("Automodel v0.5.0 components/quantization/fp8.py:34", has=("tensorwise",), own="tensorwise")
DECODERS = decoders_only("Automodel v0.5.0 recipes/llm/train_ft.py: next-token prediction")
SPACE = Space(
    COLUMNS,
    RuleTable("nemo-automodel", (KINDS, PACKED, OPTIMIZERS, RECIPES, DECODERS), RULES),
)
