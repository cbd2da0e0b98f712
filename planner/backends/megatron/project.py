"""What can Megatron not say, and what is the nearest plan that it can?

- Schedules: 1F1B and interleaved only.  A V schedule's two chunks a rank become interleaved chunks where the
  micro-batches allow it, else one chunk; the chunks' order along the model stays.
- Recompute: one policy for all stages; full recompute takes the first N layers of every chunk, so N is the largest
  that any stage wants; selective recompute covers every layer.
- Offload: one switch for all stages; activations go to the host layer by layer only without pipeline and recompute,
  else module by module in all layers.
- Switches without meaning (``cp_kind`` with cp = 1, ``dp_replicate`` without ZeRO, ...) have one spelling.

Predicted numbers are not touched: cost a projected plan again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal, TypeVar

from planner.backends.emission.emission import Projection
from planner.backends.emission.layout import Layout, StageLayout, chunks_in_model_order, layout_of
from planner.backends.emission.projections import projection, strategy_projections
from planner.backends.megatron.flags import layer_offload
from planner.backends.megatron.recompute import cannot_recompute, offload_modules
from planner.backends.megatron.space import interleaved_group_problem
from planner.backends.rules.rule import RuleInput
from planner.model.spec import ModelSpec
from planner.plan import ChunkPlan, Plan, StageOffload, StagePlan, StageRecompute
from planner.strategy import V_SCHEDULES, RecomputeModule, Strategy

_Item = TypeVar("_Item")
_NO_MEANING = "makes no difference in this plan; Megatron has one spelling for it"


def project(plan: Plan) -> tuple[Plan, tuple[Projection, ...]]:
    """The nearest plan that Megatron's flags say, and every difference.  Unchanged when there is none."""
    strategy, notes = plain_switches(plan.chosen())
    strategy, chunks, more = known_schedule(strategy, plan)
    notes += more
    strategy, recomputes, more = one_recompute(strategy, plan, chunks)
    notes += more
    strategy, offloads, more = _offload(strategy, plan, chunks)
    notes += more
    wanted = layout_of(plan)
    layout = tuple(
        StageLayout(stage, chunks[stage], recomputes[stage], offloads[stage]) for stage in range(strategy.pp)
    )
    if strategy == plan.chosen() and layout == wanted:
        return plan, ()
    return rebuilt(plan, strategy, layout), tuple(notes)


def plain_switches(wanted: Strategy) -> tuple[Strategy, list[Projection]]:
    """One spelling for switches that mean nothing beside the others."""
    changes: dict[str, Any] = {}
    if wanted.cp == 1:
        changes["cp_kind"] = "none"
    elif wanted.cp_kind == "none":
        changes["cp_kind"] = "ring"
    if wanted.tp == 1:
        changes |= {"sp": False, "overlap_tp": False}
    if wanted.zero_stage == 0:
        changes |= {"overlap_param_gather": False, "dp_replicate": 1, "dp_shard": wanted.dp}
    if wanted.recompute != "selective":
        changes["recompute_modules"] = ()
    if wanted.pp == 1 and wanted.vpp == 1 and wanted.schedule not in V_SCHEDULES:
        changes["schedule"] = "1f1b"
    strategy = replace(wanted, **changes)
    return strategy, strategy_projections(wanted, strategy, _NO_MEANING)


def known_schedule(
    wanted: Strategy, plan: Plan, reason: str = "Megatron runs only 1f1b and interleaved"
) -> tuple[Strategy, tuple[tuple[ChunkPlan, ...], ...], list[Projection]]:
    """1F1B or interleaved in the place of any other schedule, and the chunks of each rank."""
    chunks = chunks_in_model_order(layout_of(plan))
    strategy = wanted
    if wanted.schedule in V_SCHEDULES or (wanted.vpp > 1 and wanted.schedule != "interleaved"):
        strategy = _interleaved_or_plain(wanted, plan)
    elif wanted.schedule == "interleaved" and wanted.vpp > 1:
        strategy = replace(wanted, microbatch_group_size=wanted.microbatch_group_size or wanted.pp)
    elif wanted.schedule != "1f1b":
        strategy = replace(wanted, schedule="1f1b")
    if strategy.vpp == 1:
        strategy = replace(strategy, microbatch_group_size=0)
    if strategy.vpp != wanted.vpp:
        chunks = merged_chunks(chunks, wanted.vpp)
    placed = tuple(
        tuple(chunk for chunk in chunks if strategy.chunk_stage(chunk.chunk) == stage) for stage in range(strategy.pp)
    )
    return strategy, placed, strategy_projections(wanted, strategy, reason)


def _interleaved_or_plain(wanted: Strategy, plan: Plan) -> Strategy:
    interleaved = replace(
        wanted, schedule="interleaved", microbatch_group_size=wanted.microbatch_group_size or wanted.pp
    )
    given = RuleInput(interleaved, plan.problem.model, plan.problem.workload, "")
    if wanted.pp > 1 and interleaved_group_problem(given) is None:
        return interleaved
    return replace(wanted, schedule="1f1b", vpp=1, microbatch_group_size=0)


def merged_chunks(chunks: Sequence[ChunkPlan], each: int) -> tuple[ChunkPlan, ...]:
    """Join ``each`` neighbours to one chunk."""
    merged = []
    for start in range(0, len(chunks), each):
        part = chunks[start : start + each]
        merged.append(
            ChunkPlan(
                chunk=start // each,
                first_layer=part[0].first_layer,
                num_layers=sum(chunk.num_layers for chunk in part),
                has_embedding=any(chunk.has_embedding for chunk in part),
                has_head=any(chunk.has_head for chunk in part),
                num_mtp_layers=sum(chunk.num_mtp_layers for chunk in part),
            )
        )
    return tuple(merged)


def one_recompute(
    wanted: Strategy,
    plan: Plan,
    chunks: tuple[tuple[ChunkPlan, ...], ...],
    cannot: Callable[[ModelSpec, RecomputeModule], str | None] = cannot_recompute,
) -> tuple[Strategy, tuple[StageRecompute, ...], list[Projection]]:
    """One policy for all stages; ``cannot`` says why a module would not be recomputed."""
    before = [stage.recompute for stage in layout_of(plan)]
    policies = {recompute.policy for recompute in before}
    policy: Literal["none", "selective", "full"] = (
        "full" if "full" in policies else "selective" if "selective" in policies else "none"
    )
    model = plan.problem.model
    kept = tuple(module for module in wanted.recompute_modules if cannot(model, module) is None)
    if policy == "selective" and not kept:
        policy = "none"
    kept = kept if policy == "selective" else ()
    strategy = replace(wanted, recompute=policy, recompute_modules=kept)
    after = stage_recomputes(policy, kept, before, chunks)
    notes = _module_notes(wanted, model, cannot) if wanted.recompute == "selective" and policy != "full" else []
    if notes and policy != wanted.recompute:
        notes.append(projection("recompute", wanted.recompute, policy, "no module is left that can be recomputed"))
    if not notes:
        reason = "Megatron has one recompute setting for all stages and chunks"
        notes = strategy_projections(wanted, strategy, reason)
        if list(after) != before:
            notes.append(
                projection(
                    "recompute of stages",
                    counted_words(before, recompute_words),
                    counted_words(after, recompute_words),
                    reason,
                )
            )
    return strategy, after, notes


def _module_notes(
    wanted: Strategy, model: ModelSpec, cannot: Callable[[ModelSpec, RecomputeModule], str | None]
) -> list[Projection]:
    pairs = [(module, cannot(model, module)) for module in wanted.recompute_modules]
    return [projection("recompute_modules", module, "not recomputed", reason) for module, reason in pairs if reason]


def stage_recomputes(
    policy: Literal["none", "selective", "full"],
    modules: tuple[str, ...],
    before: Sequence[StageRecompute],
    chunks: tuple[tuple[ChunkPlan, ...], ...],
) -> tuple[StageRecompute, ...]:
    """What one policy for all stages means on each of them; full takes the largest count that any stage wants."""
    if policy == "none":
        return tuple(StageRecompute(policy="none") for _ in chunks)
    full = [count for recompute in before if recompute.policy == "full" for count in recompute.num_layers_per_chunk]
    return tuple(
        _stage_recompute(policy, modules, max(full, default=0), [chunk.num_layers for chunk in own]) for own in chunks
    )


def _stage_recompute(
    policy: Literal["selective", "full"], modules: tuple[str, ...], count: int, layers: list[int]
) -> StageRecompute:
    """What one setting means on a stage: ``selective`` every layer, ``full`` the first ``count`` of each chunk."""
    counts = tuple(layers) if policy == "selective" else tuple(min(count, own) for own in layers)
    if not any(counts):
        return StageRecompute(policy="none")
    return StageRecompute(policy=policy, modules=modules, num_layers_per_chunk=counts)


def recompute_words(recompute: StageRecompute) -> str:
    """``full (4/4 layers)``."""
    detail = "/".join(map(str, recompute.num_layers_per_chunk))
    return f"{recompute.policy} ({detail} layers)" if detail else recompute.policy


def _offload(
    wanted: Strategy, plan: Plan, chunks: tuple[tuple[ChunkPlan, ...], ...]
) -> tuple[Strategy, tuple[StageOffload, ...], list[Projection]]:
    """One switch for all stages."""
    before = [stage.offload for stage in plan.stages]
    optimizer = any(offload.optimizer for offload in before)
    activations = any(offload.activation_layers for offload in before)
    notes = []
    if activations and wanted.recompute == "full":
        activations = False
        reason = "module-wise offload moves activations that full recompute never saves"
        notes.append(projection("activation_offload", True, False, reason))
    elif activations and not offload_modules(plan.problem.model, wanted.recompute_modules):
        activations = False
        notes.append(projection("activation_offload", True, False, "every module is recomputed already"))
    strategy = replace(wanted, optimizer_offload=optimizer, activation_offload=activations)
    whole = layer_offload(plan.model_copy(update={"strategy": strategy.to_dict()})) if activations else None
    layers = [sum(chunk.num_layers for chunk in own) for own in chunks]
    after = tuple(
        StageOffload(optimizer=optimizer, activation_layers=(whole or count) if activations else 0) for count in layers
    )
    reason = "Megatron has one offload setting for all stages and layers"
    if not notes:
        notes = strategy_projections(wanted, strategy, reason)
        if list(after) != before:
            notes.append(
                projection(
                    "offload of stages",
                    counted_words(before, offload_words),
                    counted_words(after, offload_words),
                    reason,
                )
            )
    return strategy, after, notes


def offload_words(offload: StageOffload) -> str:
    """``optimizer and activations of 4 layers``."""
    optimizer = "optimizer and " if offload.optimizer else ""
    return f"{optimizer}activations of {offload.activation_layers} layers"


def counted_words(items: Sequence[_Item], words: Callable[[_Item], str]) -> str:
    """``none x 3, full (4 layers) x 2``: equal neighbours counted."""
    runs = [(word, len(list(run))) for word, run in groupby(map(words, items))]
    return ", ".join(f"{word} x {count}" if count > 1 else word for word, count in runs)


def rebuilt(plan: Plan, strategy: Strategy, layout: Layout) -> Plan:
    """The plan with another strategy and layout, its predicted numbers kept."""
    stages = tuple(_stage(plan.stages[own.stage], own) for own in layout)
    return plan.model_copy(update={"strategy": strategy.to_dict(), "stages": stages})


def _stage(stage: StagePlan, own: StageLayout) -> StagePlan:
    return stage.model_copy(
        update={
            "chunks": own.chunks,
            "layers": sum(chunk.num_layers for chunk in own.chunks),
            "recompute": own.recompute,
            "offload": own.offload,
        }
    )
