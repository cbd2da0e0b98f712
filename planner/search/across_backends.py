"""Which back-end runs the question fastest?  One search a back-end, one incumbent over all of them.

Each back-end is searched in its own space under its own physics, the most promising bound first.  With U the step time of
the fastest plan found so far by anybody, and u that of the back-end's own best, a strategy is left out once its bound
reaches ::

    max(U, u (1 - NEAR))

so the fastest plan is proved best over all back-ends, and each of the others is proved best in its own space up to a
gap of ``NEAR``.  Without a comparison (``SearchOptions.compare``) only U counts, and a slower back-end gets no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from planner.backends.asked import inside, why_not_these_devices
from planner.backends.backend import Software
from planner.backends.registry import software
from planner.candidate import Candidate
from planner.cost.hardware import Hardware, problem_hardware
from planner.problem import UNRESTRICTED, Problem
from planner.search.backend_rules import BackEndRules
from planner.search.branch import BACKEND_RULES, NO_FAST_FIT, NO_ROOM, Search
from planner.search.options import Incumbent, Progress, SearchOptions
from planner.search.search_result import SearchResult

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
    copied: bool = False
    """Whether the answer is another back-end's, whose space holds this one's."""

    @property
    def best(self) -> Candidate | None:
        """The best plan found in this back-end."""
        return self.result.best

    def lower_bound_s(self, overall_s: float) -> float:
        """No plan of this back-end is faster."""
        if self.best is None or not self.result.complete:
            return self.result.lower_bound_s
        own_s = self.best.step_time_s
        return min(own_s, max(overall_s, own_s * (1 - NEAR)))


@dataclass(slots=True)
class Compared:
    """Every back-end that was asked, in the order of the question; ``fastest`` is None where nobody has a plan."""

    entries: list[Entry]
    fastest: Entry | None
    complete: bool
    lower_bound_s: float
    """Of all of them together."""


def compare_backends(
    problem: Problem, asked: Sequence[Software], options: SearchOptions, progress: Progress | None = None
) -> Compared:
    """Search every back-end; what cannot run the problem at all has its reason."""
    incumbent = Incumbent()
    entries = [_entry(problem, each, options, progress, incumbent) for each in asked]
    running = [each for each in entries if each.search is not None]
    for entry in sorted(running, key=_least_bound_s):
        holder = _holder(entry, entries)
        if holder is not None:
            _copy(entry, holder)
            continue
        assert entry.search is not None
        entry.result = entry.search.run()
        if entry.best is None:
            entry.reason = _why_none(entry)
    found = [each for each in entries if each.best is not None]
    fastest = min(found, key=lambda each: each.best.step_time_s if each.best else 0.0, default=None)
    bounds = [each.lower_bound_s(incumbent.step_time_s) for each in running]
    return Compared(
        entries=entries,
        fastest=fastest,
        complete=all(each.result.complete for each in running),
        lower_bound_s=min(bounds, default=float("inf")),
    )


def unrestricted_entry(problem: Problem, options: SearchOptions, below_s: float) -> Entry:
    """The best of the whole declared space under the neutral physics, where it is faster than ``below_s``."""
    entry = _entry(problem, software(UNRESTRICTED), replace(options, top_k=0), None, Incumbent())
    if entry.search is not None:
        entry.search.near = NEAR
        entry.result = entry.search.run(below_s)
    return entry


def _entry(
    problem: Problem, wanted: Software, options: SearchOptions, progress: Progress | None, incumbent: Incumbent
) -> Entry:
    own = inside(problem, wanted)
    entry = Entry(wanted, own, problem_hardware(own, wanted.release.physics))
    refused = [why_not_these_devices(wanted, problem), *BackEndRules(own).always()]
    entry.reason = "; ".join(each for each in refused if each)
    if not entry.reason:
        entry.search = Search(own, entry.hardware, options, progress)
        entry.search.incumbent = incumbent
        entry.search.near = NEAR if options.compare else 1.0
    return entry


def _least_bound_s(entry: Entry) -> float:
    assert entry.search is not None
    return entry.search.least_bound_s


def _holder(entry: Entry, entries: Sequence[Entry]) -> Entry | None:
    """A back-end that was searched, whose space holds this one's and whose best plan this one can run."""
    for other in entries:
        best = other.best
        if other.software.name != entry.software.backend.inside or best is None or not other.result.complete:
            continue
        same = other.hardware.physics == entry.hardware.physics
        if same and not BackEndRules(entry.problem).refuses(best.strategy, best.split.chunk_layers):
            return other
    return None


def _copy(entry: Entry, holder: Entry) -> None:
    """What is best in a space is best in every part of it that holds it."""
    entry.result, entry.copied = holder.result, True


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
    if result.pruned[BACKEND_RULES] and not result.evaluated:
        return "its rules refuse every strategy that was promising"
    if result.pruned[NO_ROOM] + result.pruned[NO_FAST_FIT]:
        return "no strategy of its space fits in memory"
    return "no strategy of its space fits"
