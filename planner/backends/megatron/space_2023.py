"""The strategies that Megatron-LM 23.04 can run.

NVIDIA/Megatron-LM tag 23.04 (2023-04): the first one with what arXiv 2205.05198 measured in 2022, sequence parallelism
and selective recompute, and with the distributed optimizer.  As ``space_2021``, but for:

- sp: ``--sequence-parallel`` (arguments.py:778), off with tp = 1 (:337-341).
- Recompute: ``--recompute-granularity selective`` replays the core of attention in every layer and takes no method
  (arguments.py:332-335; model/transformer.py:473, 651); ``full`` with ``--recompute-method block`` the first
  ``--recompute-num-layers`` layers of every chunk (model/transformer.py:1182-1187).
- ZeRO: ``--use-distributed-optimizer`` (arguments.py:984), ZeRO-1 under local DDP (:179-181); gradients and parameters
  travel behind the last backward pass (training.py:439), so nothing overlaps.
- Attention: unfused unless ``--use-flash-attn`` says otherwise (arguments.py:755), which the runs of 2022 did not have:
  the physics is that of 2021.
- fp8: with ``--transformer-impl transformer_engine`` (arguments.py:321-323), which has kernels of its own: left out.
- Models: also rotary positions (arguments.py:522), ``--swiglu`` (:548), no bias (:758), a head of its own (:558).
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.backend import Space
from planner.backends.megatron.model_rules_2021 import Builds, model_rules
from planner.backends.megatron.space_2021 import (
    SPACE_2021,
    chunks_in_place,
    equal_chunks,
    interleaved_micro_batches,
    interleaved_stages,
    no_flag,
    optimizer,
    precision,
    schedule,
    spelled,
    stages_outermost,
    torch_ddp,
    widths,
)
from planner.backends.rules.divisibility import exact_batch, heads, positions
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule
from planner.backends.rules.training_kinds import training_kinds
from planner.strategy.strategy import RecomputeModule

_TAG = "Megatron-LM 23.04 megatron"
_SELECTIVE: tuple[RecomputeModule, ...] = ("attention_core",)


def _selective(given: RuleInput) -> str | None:
    s = given.strategy
    if s.recompute == "selective" and s.recompute_modules != _SELECTIVE:
        return "selective recompute replays the core of attention alone: recompute_modules must be attention_core"
    return None


def _zero(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage > 1:
        return f"the distributed optimizer shards optimizer states alone: zero_stage 0 or 1, not {s.zero_stage}"
    return "states are sharded over all data-parallel ranks: dp_replicate must be 1" if s.dp_replicate > 1 else None


def _local_ddp(given: RuleInput) -> str | None:
    s = given.strategy
    if s.overlap_grad_reduce and s.zero_stage:
        return "the distributed optimizer needs local DDP, which overlaps nothing: overlap_grad_reduce must be off"
    return None


PROBLEM_RULES: tuple[SpaceRule, ...] = (
    training_kinds("Megatron-LM 23.08 megatron/arguments.py: no flag says it"),
    packed_sequences(f"{_TAG}/arguments.py: --reset-attention-mask masks all pairs of a sequence"),
    SpaceRule("A3", f"{_TAG}/arguments.py:268", positions),
    SpaceRule("W1", f"{_TAG}/arguments.py:160-168, 321", precision),
    SpaceRule("W2", f"{_TAG}/arguments.py: --optimizer", optimizer),
)
"""Those that no strategy mends, as the model's."""
MODEL_RULES = model_rules(
    f"{_TAG}/arguments.py: no flag says it",
    Builds(positions=frozenset({"learned", "rope", "none"}), gated=True, own_head=True, without_bias=True),
)
STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("A1", f"{_TAG}/microbatches.py", exact_batch(), ("micro_batch_size", "num_microbatches", "dp")),
    SpaceRule("A2", f"{_TAG}/arguments.py:138-141", interleaved_stages, ("vpp", "pp")),
    SpaceRule("A4", f"{_TAG}/arguments.py:172-186", torch_ddp, ("overlap_grad_reduce", "pp")),
    SpaceRule("A5", f"{_TAG}/model/transformer.py:473, 651", _selective, ("recompute_modules", "recompute")),
    SpaceRule("A6", f"{_TAG}/arguments.py:177-181", _zero, ("zero_stage", "dp_replicate")),
    SpaceRule("A7", f"{_TAG}/arguments.py:179-181", _local_ddp, ("overlap_grad_reduce", "zero_stage")),
    SpaceRule("S1", f"{_TAG}/core/pipeline_parallel/schedules.py", schedule, ("schedule", "vpp")),
    SpaceRule(
        "S2",
        f"{_TAG}/core/pipeline_parallel/schedules.py:447",
        interleaved_micro_batches,
        ("num_microbatches", "pp", "microbatch_group_size", "micro_batch_size", "vpp"),
    ),
    SpaceRule("T1", f"{_TAG}/model/transformer.py:956, 1083-1089", equal_chunks, ("pp", "vpp")),
    SpaceRule("T2", f"{_TAG}/model/transformer.py", heads, ("tp",)),
    SpaceRule("T3", f"{_TAG}/core/tensor_parallel/layers.py", widths, ("tp",)),
    SpaceRule("T4", f"{_TAG}/core/parallel_state.py:83-96", stages_outermost, ("axis_order",)),
    SpaceRule("T5", f"{_TAG}/model/transformer.py:1099", chunks_in_place, ("pp", "vpp")),
    *no_flag(f"{_TAG}/arguments.py: no flag says it", allowed=("sp", "zero_stage")),
)

SPACE_2023 = Space(
    columns=replace(
        SPACE_2021.columns,
        sequence_parallel=(True, False),
        zero_stages=(0, 1),
        zero_stages_with_pipeline=(0, 1),
        recompute=("none", "selective", "full"),
        selective_modules=_SELECTIVE,
        whole_recompute=False,
    ),
    rules=RuleTable("megatron", (*PROBLEM_RULES, *MODEL_RULES), STRATEGY_RULES),
    spelled=spelled,
)
