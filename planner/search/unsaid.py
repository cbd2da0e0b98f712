"""A back-end's values for what nobody chose: switches that its columns leave one value, or tie to others.

A strategy that is given by hand, or that is one move away from a plan, says a few fields.  The others have neutral
values or those of the plan, and a back-end may have another one: FSDP2 gathers ahead whether or not somebody asked.
Fields that were chosen are never touched: rules refuse them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from planner.backends.rules.columns import Columns
from planner.backends.rules.pipeline import interleaved_group_size
from planner.search.backend_rules import BackEndRules
from planner.strategy.schedules import GROUPED_SCHEDULES
from planner.strategy.strategy import Strategy

DATA_OVERLAP = ("overlap_grad_reduce", "overlap_param_gather")


def with_unsaid(strategy: Strategy, given: Collection[str] | None, rules: BackEndRules) -> Strategy:
    """The strategy with fields outside of ``given`` as the back-end has them; None = all fields were chosen."""
    if given is None:
        return strategy
    columns = rules.software.release.space.columns
    kinds = columns.context_kinds(denoiser=rules.problem.model.denoiser is not None)
    tied = (*_tied(strategy, columns, kinds), ("dispatcher", rules.dispatcher(strategy.ep, strategy.etp)))
    changes = {name: value for name, value in tied if name not in given}
    settled = replace(strategy, **changes)
    for option in _data_overlaps(settled, given, columns):
        if not any(set(found.fields) & set(DATA_OVERLAP) for found in rules.broken(option)):
            return option
    return settled


def _tied(s: Strategy, columns: Columns, kinds: Sequence[str]) -> Iterator[tuple[str, Any]]:
    if s.tp > 1 and s.sp not in columns.sequence_parallel:
        yield "sp", columns.sequence_parallel[0]
    if s.overlap_tp and not columns.overlap_tp:
        yield "overlap_tp", False
    if s.overlap_ep not in columns.overlap_ep and s.ep > 1:
        yield "overlap_ep", columns.overlap_ep[0]
    if s.cp > 1 and kinds and s.cp_kind not in kinds:
        yield "cp_kind", kinds[0]
    if columns.derived_group and s.pp > 1 and s.schedule in GROUPED_SCHEDULES:
        yield "microbatch_group_size", interleaved_group_size(s.pp, s.num_microbatches)
    if s.recompute == "selective" and columns.selective_modules:
        yield "recompute_modules", columns.selective_modules


def _data_overlaps(s: Strategy, given: Collection[str], columns: Columns) -> Iterator[Strategy]:
    """The strategy itself, then with the pairs of the columns that keep what was chosen."""
    yield s
    late = s.pp > 1 and not columns.overlap_grad_with_pipeline
    for reduces, gathers in columns.overlap_data:
        pair: dict[str, Any] = {"overlap_grad_reduce": reduces and not late, "overlap_param_gather": gathers}
        yield replace(s, **{name: value for name, value in pair.items() if name not in given})
