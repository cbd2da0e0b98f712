"""Views of a stored sweep: its rows as the documents of the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from api.wire.sweeps import SweepCellView, SweepProgress, SweepStatus, SweepSummary, SweepView
from planner.answers.sweep.question import SweepQuestion
from planner.store.records import SweepCell, SweepRecord
from planner.store.sweeps import SweepStore


def summaries(store: SweepStore, records: Sequence[SweepRecord]) -> tuple[SweepSummary, ...]:
    """Sweeps without their cells."""
    counts = store.counts([record.sweep_id for record in records])
    return tuple(_summary(record, counts.get(record.sweep_id, {})) for record in records)


def whole(store: SweepStore, record: SweepRecord) -> SweepView:
    """A sweep with its cells."""
    cells = store.cells(record.sweep_id)
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell.state] = counts.get(cell.state, 0) + 1
    summary = _summary(record, counts)
    return SweepView(**dict(summary), cells=tuple(map(_cell, cells)))


def _summary(record: SweepRecord, counts: Mapping[str, int]) -> SweepSummary:
    return SweepSummary(
        sweep_id=record.sweep_id,
        status=_status(record),
        owner=record.owner,
        created_at=record.created_at,
        ended_at=record.ended_at,
        progress=SweepProgress.model_validate({"cells": sum(counts.values()), **counts}),
        question=SweepQuestion.model_validate_json(record.question),
    )


def _status(record: SweepRecord) -> SweepStatus:
    if record.cancelled_at is not None:
        return "cancelling" if record.ended_at is None else "cancelled"
    return "running" if record.ended_at is None else "finished"


def _cell(cell: SweepCell) -> SweepCellView:
    return SweepCellView.model_validate({**json.loads(cell.line), "job_id": cell.job_id})
