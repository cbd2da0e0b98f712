"""What does each back-end make of the question, and what could no back-end run?  Rows of the plan's table."""

from __future__ import annotations

from collections.abc import Sequence

from planner.candidate import Candidate
from planner.memory.fit_chance import fits_probability
from planner.plan import BackEndAnswer, UnrestrictedAnswer
from planner.search.across_backends import Entry
from planner.search.backend_rules import BackEndRules


def backend_answers(entries: Sequence[Entry], fastest_s: float) -> tuple[BackEndAnswer, ...]:
    """Every back-end that was asked, the fastest first, those without a plan last."""
    answers = [_answer(each, fastest_s) for each in entries]
    return tuple(sorted(answers, key=lambda each: float("inf") if each.step_time_s is None else each.step_time_s))


def _answer(entry: Entry, fastest_s: float) -> BackEndAnswer:
    name, release, best = entry.software.name, entry.software.release.version, entry.best
    if best is None:
        return BackEndAnswer(backend=name, release=release, reason=entry.reason)
    bound_s = entry.lower_bound_s
    strategy = BackEndRules(entry.problem).spelled(best.strategy, best.split.chunk_layers)
    return BackEndAnswer(
        backend=name,
        release=release,
        step_time_s=best.step_time_s,
        slower_by=best.step_time_s / fastest_s - 1.0,
        lower_bound_s=bound_s,
        gap=max(0.0, 1.0 - bound_s / best.step_time_s),
        strategy=strategy.to_dict(),
        peak_memory_bytes=round(best.peak_memory_bytes),
        fits_probability=fits_probability(entry.hardware.memory_bytes, best.peak_memory_bytes, name),
    )


def unrestricted_answer(free: Entry, fastest: Entry) -> UnrestrictedAnswer | None:
    """What the free space would give beside the fastest plan; None where it gives nothing faster."""
    best, own = free.best, fastest.best
    if best is None or own is None or best.step_time_s >= own.step_time_s:
        return None
    mine, theirs = own.strategy.to_dict(), best.strategy.to_dict()
    bound_s = free.lower_bound_s
    return UnrestrictedAnswer(
        step_time_s=best.step_time_s,
        faster_by=1.0 - best.step_time_s / own.step_time_s,
        gap=max(0.0, 1.0 - bound_s / best.step_time_s),
        strategy=theirs,
        differs_in=tuple(name for name in mine if mine[name] != theirs[name]),
        why=_why_not(best, fastest),
    )


def _why_not(best: Candidate, fastest: Entry) -> str:
    """What keeps the fastest back-end from running the free space's best plan."""
    title = fastest.software.title
    refused = BackEndRules(fastest.problem).messages(best.strategy, best.split.chunk_layers)
    if refused:
        return f"{title} refuses it: {'; '.join(refused)}"
    columns = fastest.software.release.space.columns
    if best.strategy.pp > 1 and best.strategy.schedule not in columns.schedules:
        return f"{title} has no {best.strategy.schedule} schedule"
    return f"under the physics of {title} it is not faster, or its layers are dealt as {title} cannot say"
