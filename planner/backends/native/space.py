"""The strategies that the native trainer refuses: small functions over a ``RuleInput``.

Letters: M the model itself (``model_rules``), G rank grid and batch, T tensor and sequence parallelism, C context
parallelism, E experts, P pipeline, Z data parallelism, R recompute and offload, O overlap, L layout of the stages.
Integer arithmetic on a few fields, so that the search can ask it for every strategy.

Overlap is what FSDP2 and torch's pipelines do; the trainer reads no switch for it, so a strategy must say what runs.
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.backend import Space
from planner.backends.emission.layout import StageLayout, chunks_in_model_order
from planner.backends.native.capabilities import RECOMPUTE_MODULES
from planner.backends.native.model_rules import MODEL_RULES
from planner.backends.rules.columns import Columns
from planner.backends.rules.divisibility import (
    context_kind,
    exact_batch,
    experts_divide,
    experts_need_sequence_parallel,
    heads,
    sequence_parallel,
)
from planner.backends.rules.overlap import FSDP2, expert_overlap, fsdp2_overlap, fsdp2_spelling, plain_spelling
from planner.backends.rules.pipeline import (
    chunks_a_rank,
    empty_chunk,
    end_problem,
    interleaved_group_size,
    microbatches,
    placement_problem,
    uneven_rounds,
)
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule, used_kinds
from planner.strategy.schedules import GROUPED_SCHEDULES, SCHEDULE_NAMES
from planner.strategy.strategy import Strategy

_SCHEDULES = "torch 2.13.0 distributed/pipelining/schedules.py"
_STAGE = "torch 2.13.0 distributed/pipelining/stage.py"
_TRAINER = "planner/backends/native/trainer"
_TENSOR = f"{_TRAINER}/tensor_parallel.py"


def _widths(given: RuleInput) -> str | None:
    tp = given.strategy.tp
    for kind in used_kinds(given.model):
        if kind.mlp and kind.mlp.intermediate_size % tp:
            return f"MLP width {kind.mlp.intermediate_size} does not divide over tp={tp}"
        if kind.moe and kind.moe.shared_intermediate_size % tp:
            return f"shared expert width {kind.moe.shared_intermediate_size} does not divide over tp={tp}"
    return None


def _query_norm(given: RuleInput) -> str | None:
    wide = any(kind.attention.qk_norm == "full_width" for kind in used_kinds(given.model))
    return "a query norm over all heads needs tp = 1" if wide and given.strategy.tp > 1 else None


def _tokens_divide(given: RuleInput) -> str | None:
    s, tokens = given.strategy, given.workload.sequence_length
    parts = s.cp * (2 if s.cp_kind == "ring" and s.cp > 1 else 1)
    if tokens % parts:
        return f"sequence length {tokens} does not divide into {parts} parts over cp={s.cp} ({s.cp_kind})"
    if s.sp and tokens // s.cp % s.tp:
        return f"the {tokens // s.cp} tokens of a cp rank do not divide over tp={s.tp}, which sp needs"
    return None


def _context_heads(given: RuleInput) -> str | None:
    s = given.strategy
    if s.cp == 1 or s.cp_kind != "all_to_all":
        return None
    for kind in used_kinds(given.model):
        for count, name in ((kind.attention.num_heads, "attention"), (kind.attention.num_kv_heads, "key-value")):
            if count % (s.tp * s.cp):
                return f"all-to-all cp: {count} {name} heads do not divide over tp x cp = {s.tp * s.cp}"
    return None


def _expert_grid(given: RuleInput) -> str | None:
    s = given.strategy
    if s.etp != 1:
        return f"etp={s.etp} is not built: routed experts are split over ep only"
    replicas = s.dp_replicate if s.zero_stage == 0 else 1
    block = s.tp * s.cp * s.dp_shard * replicas
    if block % s.ep:
        what = "tp x cp x dp" if s.zero_stage == 0 else "tp x cp x dp_shard"
        return f"ep={s.ep} does not divide {what} = {block}"
    return None


def _schedule(given: RuleInput) -> str | None:
    s = given.strategy
    # torch counts rounds even where a rank holds one chunk and they mean nothing.
    return uneven_rounds(given) if s.pp > 1 and s.schedule == "zb_h1" else None


def _microbatch_rounds(given: RuleInput) -> str | None:
    s = given.strategy
    if s.pp == 1:
        return None
    wanted = s.microbatch_group_size
    if s.schedule not in GROUPED_SCHEDULES:
        return f"microbatch_group_size is {wanted}, {s.schedule} has none" if wanted else None
    group = interleaved_group_size(s.pp, s.num_microbatches)
    derived = f"torch derives a micro-batch group of {group}, not {wanted}"
    return uneven_rounds(given) or (None if wanted == group else derived)


def _tied(given: RuleInput) -> str | None:
    if given.model.tie_embeddings and given.strategy.pp > 1:
        return "tied embedding and head need pp = 1: torch's stages share no parameters"
    return None


def _zero_pipeline(given: RuleInput) -> str | None:
    s = given.strategy
    if s.pp == 1 or s.zero_stage <= 1:
        return None
    return (
        f"zero_stage {s.zero_stage} with pp > 1 saves nothing over 1: torch's stages keep whole gradients, and gather"
        " whole chunks, until the last micro-batch"
    )


def _recompute_modules(given: RuleInput) -> str | None:
    modules: set[str] = set()
    if given.strategy.recompute == "selective":
        modules.update(given.strategy.recompute_modules)
    for stage in given.layout or ():
        modules.update(stage.recompute.modules)
    unknown = ", ".join(sorted(modules - RECOMPUTE_MODULES))
    if unknown:
        return f"recompute of {unknown} is not built"
    late = any(kind.norm_placement == "post_residual" for kind in used_kinds(given.model))
    return "recompute of norms is built for norms before the branches" if "norm" in modules and late else None


def _offload(given: RuleInput) -> str | None:
    s, stages = given.strategy, given.layout or ()
    if s.optimizer_offload or any(stage.offload.optimizer for stage in stages):
        return "optimizer offload is not built: FSDP2's CPUOffloadPolicy moves the parameters as well"
    if s.activation_offload or any(stage.offload.activation_layers for stage in stages):
        return "activation offload is not built: torch's save_on_cpu also moves the weights that FSDP gathered"
    return None


def _tensor_overlap(given: RuleInput) -> str | None:
    s = given.strategy
    return (
        "tensor-parallel collectives are not overlapped: overlap_tp must be off" if s.overlap_tp and s.tp > 1 else None
    )


def _recompute_counts(rank: int, stage: StageLayout) -> str | None:
    counts = stage.recompute.num_layers_per_chunk
    if counts and len(counts) != len(stage.chunks):
        return f"stage {rank} gives {len(counts)} recompute counts for {len(stage.chunks)} chunks"
    return None


def _placement(given: RuleInput) -> str | None:
    return placement_problem(given, of_stage=_recompute_counts)


def _ends(given: RuleInput) -> str | None:
    chunks = chunks_in_model_order(given.layout or ())
    problems = (end_problem(chunk, len(chunks)) for chunk in chunks)
    return next((problem for problem in problems if problem is not None), None)


STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule(
        "G1",
        f"{_TRAINER}/data.py: sample_indices",
        exact_batch(),
        ("micro_batch_size", "num_microbatches", "dp"),
    ),
    SpaceRule("T1", _TENSOR, heads, ("tp",)),
    SpaceRule("T2", _TENSOR, _widths, ("tp",)),
    SpaceRule("T3", _TENSOR, _query_norm, ("tp",)),
    SpaceRule("T4", _TENSOR, sequence_parallel, ("sp", "tp")),
    SpaceRule(
        "C1",
        f"{_TRAINER}/positions.py: local_positions",
        _tokens_divide,
        ("cp", "cp_kind", "tp", "sp"),
    ),
    SpaceRule("C2", f"{_TRAINER}/context_parallel.py", context_kind, ("cp_kind", "cp")),
    SpaceRule("C3", "arXiv 2309.14509, section 3", _context_heads, ("cp_kind", "cp", "tp")),
    SpaceRule("E1", f"{_TRAINER}/mixture.py: Experts", experts_divide, ("ep",)),
    SpaceRule(
        "E2",
        f"{_TRAINER}/mesh.py: expert_grid",
        _expert_grid,
        ("ep", "etp", "dp_shard", "cp", "tp"),
    ),
    SpaceRule("E3", f"{_TENSOR}: routed tokens are sequence-split", experts_need_sequence_parallel, ("sp", "tp")),
    SpaceRule("P1", _SCHEDULES, _schedule, ("num_microbatches", "pp", "schedule")),
    SpaceRule(
        "P2", f"{_SCHEDULES}: ZBV and DualPipeV want two stages a rank", chunks_a_rank, ("vpp", "schedule", "pp")
    ),
    SpaceRule(
        "P3",
        f"{_SCHEDULES}:1021 (1F1B), :3440 (DualPipeV)",
        microbatches,
        ("num_microbatches", "micro_batch_size", "pp", "schedule"),
    ),
    SpaceRule(
        "P4",
        f"{_SCHEDULES}:2935-2941, :3046-3052",
        _microbatch_rounds,
        ("microbatch_group_size", "num_microbatches", "pp"),
    ),
    SpaceRule(
        "P5",
        f"{_TRAINER}/pipeline.py; torchtitan 0.3.0 models/common/decoder.py:141-157",
        _tied,
        ("pp",),
    ),
    SpaceRule("Z1", f"{_STAGE}: backward_maybe_with_nosync, perform_reduce_grad", _zero_pipeline, ("zero_stage", "pp")),
    SpaceRule(
        "R1",
        f"{_TRAINER}/recompute.py, branch_input.py",
        _recompute_modules,
        ("recompute_modules", "recompute"),
    ),
    SpaceRule(
        "R2",
        "torch 2.13.0 distributed/fsdp/_fully_shard/_fsdp_api.py: CPUOffloadPolicy",
        _offload,
        ("optimizer_offload", "activation_offload"),
    ),
    SpaceRule("O1", FSDP2, fsdp2_overlap, ("overlap_grad_reduce", "overlap_param_gather", "pp")),
    SpaceRule("O2", f"{_TENSOR}: not built", _tensor_overlap, ("overlap_tp", "tp")),
    SpaceRule("O3", f"{_TRAINER}/mixture.py: not built", expert_overlap, ("overlap_ep", "ep")),
    SpaceRule("L1", f"{_TRAINER}/assemble.py", _placement, ("pp", "vpp")),
    SpaceRule("L2", f"{_TRAINER}/model.py: DecoderChunk", _ends, ("pp", "vpp")),
    SpaceRule(
        "L3",
        f"{_TRAINER}/pipeline.py: a stage must make its own output",
        empty_chunk,
        ("pp", "vpp"),
    ),
)

TABLE = RuleTable("native", MODEL_RULES, STRATEGY_RULES)
violations = TABLE.violations


def spelled(s: Strategy, given: RuleInput) -> Strategy:
    """One spelling for switches that mean nothing beside the others."""
    changes = plain_spelling(s) | fsdp2_spelling(s, given)
    if s.pp == 1:
        changes |= {"schedule": "1f1b", "microbatch_group_size": 0}
    return replace(s, **changes)


SPACE = Space(
    Columns(
        schedules=SCHEDULE_NAMES,
        derived_group=True,
        repeated_kv_heads=False,
        zero_stages_with_pipeline=(0, 1),
        expert_tensor_parallel=False,
        optimizer_offload=False,
        activation_offload=False,
        overlap_ep=(False,),
        overlap_tp=False,
        overlap_grad_with_pipeline=False,
    ),
    TABLE,
    spelled,
)
