"""A sweep for programs: one flat line a cell, with the same columns for each; CSV; a count of kinds."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from planner.answers.sweep.answer import FITS, Answer, AnswerKind, Figures
from planner.answers.sweep.task import OutcomeKind
from profiles.units import HOUR_S

KINDS: tuple[AnswerKind, ...] = (*get_args(OutcomeKind), "missing")
NO_FIGURES: dict[str, Any] = dict.fromkeys(
    (
        "plan_id",
        "backend",
        "release",
        "status",
        "step_time_s",
        "step_time_interval_s",
        "tokens_per_s",
        "tokens_per_s_per_device",
        "model_flops_utilization",
        "peak_memory_bytes",
        "memory_limit_bytes",
        "fits_probability",
        "lower_bound_s",
        "gap",
        "cost_per_step",
        "cost_per_million_tokens",
        "strategy",
    )
)
"""Columns that only a plan fills."""


def line(answer: Answer, price_per_device_hour: float | None = None) -> dict[str, Any]:
    """A cell as plain data.  ``price_per_device_hour``: instead of what the cluster's description says."""
    cell, figures = answer.cell, answer.figures
    return {
        "model": cell.model,
        "cluster": cell.cluster,
        "num_devices": cell.num_devices,
        "sequence_length": cell.sequence_length,
        "global_batch_size": cell.global_batch_size,
        "outcome": answer.kind,
        "fits": FITS.get(answer.kind),
        "problem_id": None if cell.problem is None else cell.problem.problem_id,
        **(NO_FIGURES if figures is None else _figures(figures, price_per_device_hour)),
        "reason": answer.what,
        "where": answer.where,
        "hint": answer.hint,
        "binding": answer.binding,
        "relaxations": list(answer.relaxations),
        "source": answer.source,
        "worker": answer.worker or None,
        "wall_s": answer.wall_s,
    }


def lines(answers: Iterable[Answer], price_per_device_hour: float | None = None) -> list[dict[str, Any]]:
    """All cells in the order of the grid."""
    ordered = sorted(answers, key=lambda answer: answer.cell.index)
    return [line(answer, price_per_device_hour) for answer in ordered]


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many cells ended how; ``stored`` of the planned ones were known before."""
    counts = Counter(row["outcome"] for row in rows)
    stored = sum(row["source"] == "stored" for row in rows)
    return {"cells": len(rows), **{kind: counts[kind] for kind in KINDS}, "stored": stored}


def csv_text(rows: Sequence[dict[str, Any]]) -> str:
    """RFC 4180 with a head; what is not a number or text is JSON, what is unknown is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    names = list(rows[0]) if rows else []
    writer.writerow(names)
    writer.writerows([_csv_cell(row[name]) for name in names] for row in rows)
    return buffer.getvalue()


def _figures(figures: Figures, price: float | None) -> dict[str, Any]:
    hourly = figures.price_per_device_hour if price is None else price
    per_step = None if hourly is None else hourly * figures.num_devices * figures.step_time_s / HOUR_S
    per_token = None if hourly is None else hourly * figures.num_devices / HOUR_S / figures.tokens_per_s
    return {
        "plan_id": figures.plan_id,
        "backend": figures.backend,
        "release": figures.release,
        "status": figures.status,
        "step_time_s": figures.step_time_s,
        "step_time_interval_s": list(figures.step_time_interval_s),
        "tokens_per_s": figures.tokens_per_s,
        "tokens_per_s_per_device": figures.tokens_per_s_per_device,
        "model_flops_utilization": figures.model_flops_utilization,
        "peak_memory_bytes": figures.peak_memory_bytes,
        "memory_limit_bytes": figures.memory_limit_bytes,
        "fits_probability": figures.fits_probability,
        "lower_bound_s": figures.lower_bound_s,
        "gap": figures.gap,
        "cost_per_step": per_step,
        "cost_per_million_tokens": None if per_token is None else per_token * 1e6,
        "strategy": figures.strategy,
    }


def _csv_cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, list | dict) else value
