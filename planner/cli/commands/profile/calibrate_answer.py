"""Calibrations as answers: errors before and after, the ladder of factors, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from planner.question.factors import MEANINGS, UNITS, Factors, factor_words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.evidence.calibration.document import Calibration, ErrorFigures, FittedQuantity
    from planner.evidence.runs.prediction import Unmapped

SHOWN_REASONS = 12


def answer_data(
    found: Sequence[Calibration], written: dict[str, str], lost: Sequence[Unmapped], *, with_rows: bool
) -> dict[str, Any]:
    """Everything as plain JSON data."""
    reasons = Counter(each.reason for each in lost)
    unmapped: dict[str, Any] = {"n": len(lost), "reasons": dict(reasons.most_common())}
    if with_rows:
        unmapped["rows"] = [{"id": each.row.id, "reason": each.reason} for each in lost]
    return {"calibrations": [_calibration(each, written) for each in found], "unmapped": unmapped}


def list_data(stored: Sequence[Calibration]) -> list[dict[str, Any]]:
    """What a person asks first about each."""
    return [
        {
            "calibration_id": each.calibration_id,
            "framework": each.framework,
            "framework_version": each.framework_version,
            "backends": _corrects(each),
            "device": each.device,
            "factors": each.factors.changed(),
            "num_rows": each.time.n if each.time else 0,
            "profile_id": each.profile_id,
            "created_at": each.created_at,
        }
        for each in stored
    ]


def at_bounds(factors: Factors) -> list[str]:
    """Factors that stand at the end of their range: the model lacks something that no factor makes up for."""
    found = []
    for name, value in factors.changed().items():
        limits = [getattr(each, part) for each in Factors.model_fields[name].metadata for part in ("ge", "le")
                  if getattr(each, part, None) is not None]  # fmt: skip
        if any(abs(value - limit) <= 1e-9 * max(abs(limit), 1.0) for limit in limits):
            found.append(name)
    return found


def _calibration(each: Calibration, written: dict[str, str]) -> dict[str, Any]:
    data = each.model_dump(mode="json")
    errors = {
        **(each.time.standard_errors if each.time else {}),
        **(each.memory.standard_errors if each.memory else {}),
    }
    data["factors"] = {
        name: {
            "value": value,
            "standard_error": errors.get(name),
            "unit": UNITS[name],
            "meaning": MEANINGS[name],
        }
        for name, value in each.factors.changed().items()
    }
    useful = bool(data["factors"])
    identity = each.calibration_id if useful else None
    return {
        "calibration_id": identity,
        "file": written.get(each.calibration_id),
        "backends": _corrects(each),
        "at_bounds": at_bounds(each.factors),
        **data,
    }


def answer_tables(
    found: Sequence[Calibration], written: dict[str, str], lost: Sequence[Unmapped]
) -> Iterable[RenderableType]:
    """One overview, then each calibration with its factors and ladder, then what could not be used."""
    from planner.cli.render.tables import table

    columns = (
        "runs of",
        "device",
        "what",
        ">n",
        ">before",
        ">p90",
        ">bias",
        ">in sample",
        ">left out",
        ">p90",
        ">bias",
    )
    yield table("Errors (median, 90th percentile, bias)", columns, [line for each in found for line in _errors(each)])
    for each in found:
        yield from _one(each, written)
    if lost:
        reasons = Counter(one.reason for one in lost).most_common(SHOWN_REASONS)
        yield ""
        yield table(
            f"{len(lost)} runs that could not be used",
            ("reason", ">runs"),
            [(reason, str(count)) for reason, count in reasons],
        )


def list_tables(stored: Sequence[Calibration]) -> Iterable[RenderableType]:
    """Stored calibrations, oldest first."""
    from planner.answers.views.words import short_id
    from planner.cli.render.tables import table

    if not stored:
        yield "No calibration is stored. `meshwright profile calibrate TRUTH.csv` makes some."
        return
    rows = [
        (
            short_id(each.calibration_id),
            f"{each.framework} {each.framework_version}".strip(),
            ", ".join(_corrects(each)) or "nothing",
            each.device,
            str(each.time.n if each.time else 0),
            ", ".join(factor_words(name, value) for name, value in each.factors.changed().items()),
            each.created_at[:16].replace("T", " "),
        )
        for each in stored
    ]
    yield table("", ("calibration", "runs of", "corrects", "device", ">rows", "factors", "made (UTC)"), rows)


def _errors(each: Calibration) -> Iterable[tuple[str, ...]]:
    for name, quantity in (("step time", each.time), ("memory", each.memory)):
        if quantity is None:
            continue
        before, after, left = quantity.before, quantity.after_in_sample, quantity.after_leave_one_out
        yield (
            f"{each.framework} {each.framework_version}".strip(),
            each.device,
            name,
            f"{quantity.n}",
            *_figures(before),
            _percent(after.median),
            *(_figures(left) if left is not None else ("unknown", "", "")),
        )


def _figures(figures: ErrorFigures) -> tuple[str, str, str]:
    bias = "-" if figures.bias is None else f"{100 * figures.bias:+.1f} %"
    return _percent(figures.median), _percent(figures.p90), bias


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _one(each: Calibration, written: dict[str, str]) -> Iterable[RenderableType]:
    from planner.cli.render.tables import table

    name = f"{each.framework} {each.framework_version}".strip()
    changed = each.factors.changed()
    yield ""
    if not changed:
        yield f"{name} on {each.device}: no factor lowers the error of runs that it has not seen; nothing is kept."
    else:
        errors = {**_standard_errors(each.time), **_standard_errors(each.memory)}
        rows = [
            (factor_words(factor, value), _error_words(factor, errors.get(factor)), MEANINGS[factor])
            for factor, value in changed.items()
        ]
        yield table(f"{name} on {each.device}", ("factor", ">standard error", "meaning"), rows)
        if stuck := at_bounds(each.factors):
            yield f"  at the end of its range: {', '.join(stuck)}; the planner lacks something that no factor replaces"
    for what, quantity in (("step time", each.time), ("memory", each.memory)):
        if quantity is not None:
            yield f"  {what}: {_ladder_words(quantity)}"
            if quantity.heaviest:
                heavy = ", ".join(f"{row.row} ({100 * row.moves_prediction_by:.1f} %)" for row in quantity.heaviest)
                yield f"  {what}: left out, these move a prediction most: {heavy}"
    if changed:
        corrected = _corrects(each)
        yield f"  corrects: {', '.join(corrected)}" if corrected else f"  corrects: nothing; {_of_none(each)}"
    if each.calibration_id in written:
        yield f"  stored: use it with --calibration {each.calibration_id[:12]}"


def _corrects(each: Calibration) -> list[str]:
    """Back-ends that a plan or an estimate with it may be of."""
    from planner.evidence.calibration.asked_backends import corrected_backends

    return list(corrected_backends(each))


def _of_none(each: Calibration) -> str:
    return f"no back-end has the physics {each.traits}; say --backend NAME, and the runs are predicted as its"


def _standard_errors(quantity: FittedQuantity | None) -> dict[str, float]:
    return {} if quantity is None else quantity.standard_errors


def _ladder_words(quantity: FittedQuantity) -> str:
    """``none 0.223 > +compute 0.068 > +communication 0.068 (no)``: mean |ln error| of left-out runs."""
    if quantity.num_configurations < 2:
        return "one configuration only; the error of other runs is unknown"
    parts = []
    for rung in quantity.ladder:
        name = f"+ {rung.factors[-1]}" if rung.factors else "none"
        value = "unknown" if rung.mean_abs_log is None else f"{rung.mean_abs_log:.3f}"
        parts.append(f"{name} {value}{'' if rung.taken else ' (not kept)'}")
    return "mean |ln error| of left-out runs: " + ", ".join(parts)


def _error_words(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return {"ratio": f"{value:.3f}", "s": f"{1e3 * value:.2f} ms"}.get(UNITS[name], f"{value / 2**30:.2f} GiB")
