"""The values of a strategy that a back-end does not have: its columns, asked as rules about one strategy.

The search enumerates columns only; a strategy that somebody gives by hand, or that came from another back-end, has to
be asked.  For back-ends without files, whose rules say little else.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.backends.rules.columns import Columns
from planner.backends.rules.overlap import data_parallel
from planner.backends.rules.pipeline import interleaved_group_size
from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.strategy.schedules import GROUPED_SCHEDULES
from planner.strategy.strategy import Strategy

SWITCHES = ("sp", "cp_kind", "axis_order")
GROUP = ("microbatch_group_size", "num_microbatches")
STATES = ("zero_stage", "dp_replicate", "optimizer_offload")
RELIEF = ("recompute", "recompute_modules", "activation_offload")
OVERLAP = ("overlap_grad_reduce", "overlap_param_gather")


def column_rules(columns: Columns, source: str) -> tuple[SpaceRule, ...]:
    """A rule for each kind of column."""

    def rule(name: str, check: Callable[[RuleInput], str | None], *fields: str) -> SpaceRule:
        return SpaceRule(name, source, check, fields)

    return (
        rule("C1", lambda given: _axes(columns, given), "tp", "cp", "ep", "pp", "etp"),
        rule(
            "C2",
            lambda given: _switches(columns, given.strategy),
            "sp",
            "cp_kind",
            "axis_order",
            "tp",
            "cp",
            "pp",
            "dp",
        ),
        rule("C3", lambda given: _schedule(columns, given.strategy), "schedule", *GROUP, "pp"),
        rule("C4", lambda given: _zero(columns, given.strategy), *STATES, "pp", "cp", "dp"),
        rule(
            "C5", lambda given: _relief(columns, given.strategy), "recompute", "recompute_modules", "activation_offload"
        ),
        rule("C6", lambda given: _overlap(columns, given), *OVERLAP, "zero_stage", "pp", "cp", "dp"),
        rule("C7", lambda given: _model_overlap(columns, given.strategy), "overlap_tp", "overlap_ep", "tp", "ep"),
    )


def _axes(columns: Columns, given: RuleInput) -> str | None:
    s = given.strategy
    for has, degree, name in (
        (columns.tensor_parallel, s.tp, "tensor parallelism: tp"),
        (bool(columns.cp_kinds), s.cp, "context parallelism: cp"),
        (columns.expert_parallel, s.ep, "expert parallelism: ep"),
        (columns.pipeline_parallel, s.pp, "pipeline: pp"),
        (columns.expert_tensor_parallel, s.etp, "tensor parallelism of experts: etp"),
    ):
        if degree > 1 and not has:
            return f"there is no {name} must be 1, not {degree}"
    if columns.expert_tensor != "any" and any(kind.moe for kind in given.model.layer_kinds):
        etp = s.tp if columns.expert_tensor == "tp" or s.ep == 1 else 1
        return None if s.etp == etp else f"etp is {columns.expert_tensor}: {etp}, not {s.etp}"
    return None


def _switches(columns: Columns, s: Strategy) -> str | None:
    if s.tp > 1 and s.sp not in columns.sequence_parallel:
        return f"tensor parallelism is never {'with' if s.sp else 'without'} sequence parallelism (sp)"
    if s.cp > 1 and columns.cp_kinds and s.cp_kind not in columns.cp_kinds:
        return f"context parallelism is {' or '.join(columns.cp_kinds)}, not {s.cp_kind}"
    if s.axis_order != "tp-cp-ep-dp-pp" and s.pp > 1 and s.dp > 1 and 1 not in columns.axis_orders:
        return "stages are the outermost axis: axis_order must be tp-cp-ep-dp-pp"
    return None


def _schedule(columns: Columns, s: Strategy) -> str | None:
    if s.pp == 1:
        return None
    if s.schedule not in columns.schedules:
        return f"there is no schedule {s.schedule}: {', '.join(columns.schedules)}"
    if columns.derived_group and s.schedule in GROUPED_SCHEDULES:
        group = interleaved_group_size(s.pp, s.num_microbatches)
        if s.microbatch_group_size != group or s.num_microbatches % group:
            return f"micro-batches run in whole groups of {group}, not {s.microbatch_group_size}"
    return None


def _zero(columns: Columns, s: Strategy) -> str | None:
    if s.dp * s.cp == 1:
        return None
    stages = columns.zero_stages_with_pipeline if s.pp > 1 else columns.zero_stages
    if s.zero_stage not in stages:
        return f"zero_stage is {' or '.join(map(str, stages))}{' with a pipeline' if s.pp > 1 else ''}"
    if s.dp_replicate > 1 and not (columns.hybrid_sharding and s.zero_stage in columns.hybrid_zero_stages):
        return f"states of zero_stage {s.zero_stage} are sharded over all ranks: dp_replicate must be 1"
    return "the optimizer stays on the device" if s.optimizer_offload and not columns.optimizer_offload else None


def _relief(columns: Columns, s: Strategy) -> str | None:
    if s.recompute not in columns.recompute:
        return f"recompute is {' or '.join(columns.recompute)}, not {s.recompute}"
    if s.recompute == "selective" and columns.selective_modules not in ((), s.recompute_modules):
        return f"selective recompute replays {', '.join(columns.selective_modules)} alone (recompute_modules)"
    return "activations stay on the device" if s.activation_offload and not columns.activation_offload else None


def _overlap(columns: Columns, given: RuleInput) -> str | None:
    """Held against what is declared where ranks share parameters; without ZeRO nothing is gathered."""
    s = given.strategy
    if not data_parallel(given):
        return None
    late = s.pp > 1 and not columns.overlap_grad_with_pipeline
    pairs = {(reduces and not late, gathers) for reduces, gathers in columns.overlap_data}
    if any(s.overlap_grad_reduce == reduces and s.overlap_param_gather == gathers for reduces, gathers in pairs):
        return None
    if s.zero_stage == 0 and any(s.overlap_grad_reduce == reduces for reduces, _ in pairs):
        return None
    words = " or ".join(f"({'on' if reduces else 'off'}, {'on' if gathers else 'off'})" for reduces, gathers in pairs)
    return f"(overlap_grad_reduce, overlap_param_gather) is {words}"


def _model_overlap(columns: Columns, s: Strategy) -> str | None:
    if s.overlap_tp and s.tp > 1 and not columns.overlap_tp:
        return "tensor-parallel collectives are not overlapped: overlap_tp must be off"
    if s.ep > 1 and s.overlap_ep not in columns.overlap_ep:
        return f"the exchange of routed tokens is {'never' if s.overlap_ep else 'always'} overlapped (overlap_ep)"
    return None
