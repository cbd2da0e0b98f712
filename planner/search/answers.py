"""What stands beside a plan: a row for each back-end, what no back-end could run, and the fastest plan."""

from __future__ import annotations

from collections.abc import Sequence

from planner.plan.plan import BackEndAnswer, FastestPlan, PlanStatus, UnrestrictedAnswer
from planner.predict.candidate import Candidate
from planner.predict.memory.fit_chance import chance_words, fits_probability
from planner.search.across_backends import Entry
from planner.search.backend_rules import BackEndRules
from planner.search.mechanisms import has_common_shape, mechanisms_of
from planner.search.recommend import BAND
from planner.search.spelled import as_spelled

GIB = 2**30
SHOWN_GIB, SHOWN_SHARE = 0.05, 0.0005
"""What is printed as another number than none."""


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


def fastest_plan(entry: Entry, plan: Candidate, status: PlanStatus) -> FastestPlan:
    """The fastest plan of a back-end beside the recommended one, ``plan``; ``status``: whether it is proved fastest."""
    best = entry.best
    assert best is not None
    same = plan is best
    fastest, plan = (as_spelled(entry.problem, entry.hardware, each) for each in (best, plan))
    mine, theirs = plan.strategy.to_dict(), fastest.strategy.to_dict()
    return FastestPlan(
        is_recommended=same,
        status=status,
        step_time_s=fastest.step_time_s,
        slower_by=plan.step_time_s / fastest.step_time_s - 1.0,
        band=BAND,
        peak_memory_bytes=round(fastest.peak_memory_bytes),
        fits_probability=_chance(entry, fastest),
        strategy=theirs,
        differs_in=tuple(name for name in mine if mine[name] != theirs[name]),
        mechanisms=_mechanisms(fastest),
        plan_mechanisms=_mechanisms(plan),
        price="" if same else price_words(entry, plan, fastest),
    )


def price_words(entry: Entry, plan: Candidate, fastest: Candidate) -> str:
    """``0.9 % slower on paper, 4.0 GiB more room, no optimizer offload``."""
    slower_by = plan.step_time_s / fastest.step_time_s - 1.0
    words = [f"{100 * slower_by:.1f} % slower on paper" if slower_by >= SHOWN_SHARE else "as fast on paper"]
    room_gib = (fastest.peak_memory_bytes - plan.peak_memory_bytes) / GIB
    if abs(room_gib) >= SHOWN_GIB:
        words.append(f"{abs(room_gib):.1f} GiB {'more' if room_gib > 0 else 'less'} room")
    chances = [chance_words(_chance(entry, each)) for each in (plan, fastest)]
    if chances[0] != chances[1]:
        words.append(f"fits with {chances[0]} instead of {chances[1]}")
    mine, theirs = _mechanisms(plan), _mechanisms(fastest)
    words += [f"no {name.removeprefix('an ')}" for name in theirs if name not in mine]
    words += [f"with {name}" for name in mine if name not in theirs]
    if mine == theirs and _is_common(entry, plan) and not _is_common(entry, fastest):
        words.append("a more common shape")
    return ", ".join(words)


def _chance(entry: Entry, candidate: Candidate) -> float:
    return fits_probability(entry.hardware.memory_bytes, candidate.peak_memory_bytes, entry.software.name)


def _mechanisms(candidate: Candidate) -> tuple[str, ...]:
    return mechanisms_of(candidate.strategy, candidate.split.chunk_layers)


def _is_common(entry: Entry, candidate: Candidate) -> bool:
    return has_common_shape(candidate, entry.problem.model.num_layers, entry.hardware.pool.devices_per_node)
