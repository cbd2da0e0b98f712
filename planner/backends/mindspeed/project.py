"""What can MindSpeed on core_v0.12.1 not say, and what is the nearest plan that it can?

As for Megatron (``megatron.project``), and besides:

- DualPipeV stays where the release runs it (``rules.dualpipev_problems``), without overlap of gradients, which the
  release cannot combine with it.
- FSDP always overlaps (gradients with zero_stage 2, parameters too with 3) and shards over all data-parallel ranks.
- Tensor-parallel overlap (MC2) exists for dense models with sequence parallelism only, and not on Atlas A3.
- Activations go to the host in all layers of equal chunks or not at all; the optimizer's states with ZeRO 1 only.
- Recomputed modules have one order.

Predicted numbers are not touched: cost a projected plan again.
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.emission.emission import Projection
from planner.backends.emission.layout import StageLayout, chunks_in_model_order, layout_of
from planner.backends.emission.projections import projection, strategy_projections
from planner.backends.megatron.project import (
    counted_words,
    known_schedule,
    offload_words,
    one_recompute,
    plain_switches,
    rebuilt,
)
from planner.backends.mindspeed.recompute import cannot_recompute, in_order
from planner.backends.mindspeed.space import dualpipev_problems, swap_attention_problems, without_mc2
from planner.backends.rules.rule import RuleInput, mixtures, rule_input
from planner.plan import ChunkPlan, Plan, StageOffload
from planner.strategy import Strategy

_ChunksOfStages = tuple[tuple[ChunkPlan, ...], ...]


def project(plan: Plan) -> tuple[Plan, tuple[Projection, ...]]:
    """The nearest plan that the flags say, and every difference.  Unchanged when there is none."""
    strategy, notes = plain_switches(plan.chosen())
    strategy, chunks, more = _schedule(strategy, plan)
    notes += more
    strategy, more = _overlap(strategy)
    notes += more
    strategy, more = _tensor_overlap(strategy, plan)
    notes += more
    strategy, recomputes, more = one_recompute(strategy, plan, chunks, cannot_recompute)
    notes += more
    strategy, more = _module_order(strategy)
    notes += more
    recomputes = tuple(
        each.model_copy(update={"modules": strategy.recompute_modules}) if each.policy == "selective" else each
        for each in recomputes
    )
    strategy, offloads, more = _offload(strategy, plan, chunks)
    notes += more
    layout = tuple(
        StageLayout(stage, chunks[stage], recomputes[stage], offloads[stage]) for stage in range(strategy.pp)
    )
    if strategy == plan.chosen() and layout == layout_of(plan):
        return plan, ()
    return rebuilt(plan, strategy, layout), tuple(notes)


def _schedule(wanted: Strategy, plan: Plan) -> tuple[Strategy, _ChunksOfStages, list[Projection]]:
    if wanted.schedule != "dualpipev":
        return known_schedule(wanted, plan, "MindSpeed runs only 1f1b, interleaved and dualpipev")
    missing = dualpipev_problems(replace(rule_input(plan), strategy=wanted))
    if missing:
        return known_schedule(wanted, plan, f"dualpipev of this release needs {', '.join(missing)}")
    chunks = chunks_in_model_order(layout_of(plan))
    placed = tuple(
        tuple(chunk for chunk in chunks if wanted.chunk_stage(chunk.chunk) == stage) for stage in range(wanted.pp)
    )
    strategy = replace(wanted, microbatch_group_size=0)
    return strategy, placed, strategy_projections(wanted, strategy, "only the interleaved schedule has groups")


def _overlap(wanted: Strategy) -> tuple[Strategy, list[Projection]]:
    """What the schedule or FSDP forces on the overlap of data parallelism."""
    if wanted.schedule == "dualpipev":
        strategy = replace(wanted, overlap_grad_reduce=False, overlap_param_gather=False)
        return strategy, strategy_projections(wanted, strategy, "dualpipev excludes the overlap of gradients")
    if wanted.zero_stage >= 2:
        gather = wanted.overlap_param_gather or wanted.zero_stage == 3
        strategy = replace(wanted, overlap_grad_reduce=True, overlap_param_gather=gather)
        notes = strategy_projections(wanted, strategy, "FSDP of this release always overlaps")
        whole = replace(strategy, dp_replicate=1, dp_shard=strategy.dp)
        return whole, notes + strategy_projections(strategy, whole, "FSDP of this release shards over all ranks")
    return wanted, []


def _tensor_overlap(wanted: Strategy, plan: Plan) -> tuple[Strategy, list[Projection]]:
    if not wanted.overlap_tp:
        return wanted, []
    if without_mc2(rule_input(plan)):
        reason = "tensor-parallel overlap (--use-ascend-mc2) is not supported on Atlas A3"
    elif mixtures(plan.problem.model) or not wanted.sp:
        reason = "tensor-parallel overlap (--use-ascend-mc2) exists for dense models with sequence parallelism only"
    else:
        return wanted, []
    strategy = replace(wanted, overlap_tp=False)
    return strategy, strategy_projections(wanted, strategy, reason)


def _module_order(wanted: Strategy) -> tuple[Strategy, list[Projection]]:
    strategy = replace(wanted, recompute_modules=in_order(wanted.recompute_modules))
    reason = "the order of modules makes no difference; the flags have one"
    return strategy, strategy_projections(wanted, strategy, reason)


def _offload(
    wanted: Strategy, plan: Plan, chunks: _ChunksOfStages
) -> tuple[Strategy, tuple[StageOffload, ...], list[Projection]]:
    """One switch for all stages; every layer or none."""
    before = [stage.offload for stage in layout_of(plan)]
    reason = "MindSpeed has one offload setting for all stages and layers"
    optimizer, activations = any(each.optimizer for each in before), any(each.activation_layers for each in before)
    if activations and (missing := swap_attention_problems(_given(wanted, plan, chunks))):
        activations, reason = False, f"activations go to the host (--swap-attention) only with {', '.join(missing)}"
    if optimizer and wanted.zero_stage != 1:
        optimizer, reason = False, "optimizer states go to the host (--swap-optimizer) only with zero_stage 1"
    strategy = replace(wanted, optimizer_offload=optimizer, activation_offload=activations)
    counts = [sum(chunk.num_layers for chunk in own) for own in chunks]
    after = tuple(StageOffload(optimizer=optimizer, activation_layers=count if activations else 0) for count in counts)
    notes = strategy_projections(wanted, strategy, reason)
    if list(after) != before:
        words = counted_words(before, offload_words)
        notes.append(projection("offload of stages", words, counted_words(after, offload_words), reason))
    return strategy, after, notes


def _given(strategy: Strategy, plan: Plan, chunks: _ChunksOfStages) -> RuleInput:
    in_model_order = sorted((chunk for own in chunks for chunk in own), key=lambda chunk: chunk.chunk)
    layers = tuple(chunk.num_layers for chunk in in_model_order)
    return replace(rule_input(plan), strategy=strategy, layers_per_chunk=layers)
