"""Finds the back-end that runs the question fastest: one search a back-end, one incumbent over all of them.

Each back-end is searched in its own space under its own physics, the most promising bound first.  With U the step time
of the fastest plan found so far by anybody, and u that of the back-end's own best, a strategy is left out once its
bound reaches ::

    max(U, u (1 - NEAR))

so the fastest plan is proved best over all back-ends, and each of the others is proved best in its own space up to a
gap of ``NEAR``.  Without a comparison (``SearchOptions.compare``) only U counts, and a slower back-end gets no answer.

Both only fall while a search runs: the last of these values bounds all that the search left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from planner.backends.asked import inside, why_not_these_devices
from planner.backends.backend import Software
from planner.backends.registry import software
from planner.predict.candidate import Candidate
from planner.predict.cost.hardware import Hardware, problem_hardware
from planner.predict.memory.fit_chance import ratio_name
from planner.question.problem import UNRESTRICTED, Problem
from planner.search.backend_rules import BackEndRules
from planner.search.branch import Search
from planner.search.options import Incumbent, Progress, SearchOptions, SearchProgress
from planner.search.search_result import Pruned, SearchResult

NEAR = 0.01
"""How near to its own optimum the answer of a back-end is that is not the fastest."""


@dataclass(slots=True)
class Entry:
    """One back-end in the comparison: its search and what came of it, or why there is none."""

    software: Software
    problem: Problem
    hardware: Hardware
    search: Search | None = None
    result: SearchResult = field(default_factory=SearchResult)
    reason: str = ""
    holder: Entry | None = None
    """Another back-end of the question with the same physics whose space holds this one's."""
    copied: bool = False
    """Whether the answer is the holder's."""

    @property
    def best(self) -> Candidate | None:
        """The best plan found in this back-end."""
        return self.result.best

    @property
    def lower_bound_s(self) -> float:
        """No plan of this back-end is faster."""
        return self.result.lower_bound_s


@dataclass(slots=True)
class Compared:
    """Every back-end that was asked, in the order of the question; ``fastest`` is None where nobody has a plan."""

    entries: list[Entry]
    fastest: Entry | None
    complete: bool
    lower_bound_s: float
    """Of all of them together."""


def compare_backends(
    problem: Problem,
    asked: Sequence[Software],
    options: SearchOptions,
    progress: Progress | None = None,
    first_found: Callable[[Entry], None] | None = None,
) -> Compared:
    """Search every back-end; what cannot run the problem at all has its reason.

    ``first_found`` hears of the first one with a plan, most often the fastest, where others are still to be searched.
    """
    incumbent = Incumbent()
    entries = [_entry(problem, each, options, incumbent) for each in asked]
    for entry in entries:
        entry.holder = next((each for each in entries if _holds(each, entry)), None)
    running = sorted((each for each in entries if each.search is not None), key=least_bound_s)
    for position, entry in enumerate(running):
        if entry.holder is not None and _answers(entry.holder, entry):
            # What is best in a space is best in every part of it that holds it.
            entry.result, entry.copied = entry.holder.result, True
            continue
        assert entry.search is not None
        if progress is not None:
            entry.search.progress = _over_all(progress, running, position, incumbent)
        entry.result = entry.search.run()
        if entry.best is None:
            entry.reason = _why_none(entry)
        elif first_found is not None and position + 1 < len(running):
            first_found(entry)
            first_found = None
    found = [each for each in entries if each.best is not None]
    fastest = min(found, key=_found_first, default=None)
    return Compared(
        entries=entries,
        fastest=fastest,
        complete=all(each.result.closed for each in running),
        lower_bound_s=min((each.lower_bound_s for each in running), default=float("inf")),
    )


def unrestricted_entry(problem: Problem, options: SearchOptions, below_s: float) -> Entry:
    """The best of the whole declared space under the neutral physics, up to ``NEAR``; faster than ``below_s`` or none.

    ``options.time_limit_s`` is what the searches before it left.
    """
    # Nobody's step time is below zero: the search is never the fastest one, so it comes near its optimum only.
    entry = _entry(problem, software(UNRESTRICTED), replace(options, top_k=0), Incumbent(step_time_s=0.0))
    if entry.search is not None:
        entry.search.near = NEAR
        entry.result = entry.search.run(below_s)
    return entry


def _entry(problem: Problem, wanted: Software, options: SearchOptions, incumbent: Incumbent) -> Entry:
    own = inside(problem, wanted)
    entry = Entry(wanted, own, problem_hardware(own, wanted.release.physics))
    # Devices of another maker say enough: what its rules say of them beside is the same in more words.
    entry.reason = why_not_these_devices(wanted, problem) or "; ".join(BackEndRules(own).always())
    if not entry.reason:
        entry.search = Search(own, entry.hardware, options)
        entry.search.incumbent = incumbent
        entry.search.near = NEAR if options.compare else 1.0
    return entry


def least_bound_s(entry: Entry) -> float:
    """The bound of the most promising strategy of a back-end that is searched, or of the space that holds its own."""
    search = entry.search if entry.holder is None else entry.holder.search
    assert search is not None
    return search.waves.least_bound_s


def _found_first(entry: Entry) -> tuple[float, bool]:
    """Of equally fast plans the one that a search of its own found."""
    assert entry.best is not None
    return entry.best.step_time_s, entry.copied


def _over_all(progress: Progress, running: Sequence[Entry], position: int, incumbent: Incumbent) -> Progress:
    """What a caller hears of the search at ``position``: the counts, the fastest plan and the bound of all together."""
    done = [each.result for each in running[:position] if not each.copied]
    bounds = [each.lower_bound_s for each in running[:position]]
    rest_s = min((least_bound_s(each) for each in running[position + 1 :]), default=float("inf"))

    def told(snapshot: SearchProgress) -> None:
        known = [*bounds, rest_s, float("inf") if snapshot.lower_bound_s is None else snapshot.lower_bound_s]
        bound_s = min(*known, incumbent.step_time_s)
        progress(
            replace(
                snapshot,
                bounded=snapshot.bounded + sum(result.bounded for result in done),
                evaluated=snapshot.evaluated + sum(result.evaluated for result in done),
                incumbent_s=incumbent.step_time_s if isfinite(incumbent.step_time_s) else None,
                lower_bound_s=bound_s if isfinite(bound_s) else None,
            )
        )

    return told


def _holds(one: Entry, other: Entry) -> bool:
    """Whether every plan of ``other`` is a plan of ``one`` with the same numbers, and both are searched."""
    held_by = one.software.backend
    named = held_by.name == other.software.backend.inside and one.software.release is held_by.releases[0]
    searched = one.search is not None and other.search is not None
    # The same measured runs say how much memory their plans may be predicted to need.
    same_room = ratio_name(one.software.name) == ratio_name(other.software.name)
    return named and searched and one.hardware.physics == other.hardware.physics and same_room


def _answers(holder: Entry, entry: Entry) -> bool:
    """Whether the best plan of the back-end that holds it is one that ``entry`` can run."""
    best = holder.best
    if best is None or not holder.result.closed:
        return False
    return not BackEndRules(entry.problem).refuses(best.strategy, best.split.chunk_layers)


def _why_none(entry: Entry) -> str:
    """In one sentence; ``planner.search.infeasible`` looks closer where nobody has a plan."""
    result, search = entry.result, entry.search
    assert search is not None
    if not result.complete:
        return "the time ran out before a plan was found"
    if search.near >= 1.0 and result.lower_bound_s >= search.incumbent.step_time_s < float("inf"):
        return "slower than the fastest"
    if not len(search.space.cores):
        return "no strategy of its space is legal on these devices under these pins"
    if result.pruned[Pruned.BACKEND_RULES] and not result.evaluated:
        return "its rules refuse every strategy that was promising"
    if result.pruned[Pruned.NO_ROOM] + result.pruned[Pruned.NO_FAST_FIT]:
        return "no strategy of its space fits in memory"
    return "no strategy of its space fits"
