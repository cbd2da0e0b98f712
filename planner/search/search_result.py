"""What a search found, and how much it looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from planner.predict.candidate import Candidate
from planner.search.options import SearchProgress

DEGREES = ("tp", "cp", "pp", "ep", "etp", "dp")
Degrees = tuple[int, ...]


class Pruned:
    """Why strategies were not solved."""

    NO_ROOM = "too little memory for any of its kind"
    NO_FAST_FIT = "no split both fits and is fast enough"
    OWN_BOUND = "slower by its own bound"
    SHARED_BOUND = "slower by the bound of its kind"
    NOT_EXAMINED = "not examined before the time ran out"
    BACKEND_RULES = "refused by the back-end's rules"


def degrees(candidate: Candidate) -> Degrees:
    """What makes two plans different in kind: their degrees."""
    return tuple(int(getattr(candidate.strategy, name)) for name in DEGREES)


@dataclass(slots=True)
class SearchResult:
    """Candidates by degrees, the proof, and how much was looked at."""

    best: Candidate | None = None
    by_degrees: dict[Degrees, Candidate] = field(default_factory=dict)
    lower_bound_s: float = float("inf")
    complete: bool = False
    """Time sufficed to look at every strategy."""
    left_open: bool = False
    """Dealings of some strategy were too many to look at, and might be faster than the best plan."""
    enumerated: int = 0
    bounded: int = 0
    evaluated: int = 0
    pruned: Counter[str] = field(default_factory=Counter)
    """Strategies by why they were not solved; with ``evaluated`` they add up to ``enumerated``."""
    refused: Counter[str] = field(default_factory=Counter)
    """Combinations of degrees that a rule refused before anything was enumerated under them."""

    @property
    def closed(self) -> bool:
        """Nothing that was not looked at can be faster."""
        return self.complete and not self.left_open

    def snapshot(self, phase: str, reached_s: float | None) -> SearchProgress:
        """What a caller hears meanwhile; ``reached_s``: nothing that is left is faster."""
        incumbent_s = None if self.best is None else self.best.step_time_s
        return SearchProgress(phase, self.bounded, self.evaluated, incumbent_s, reached_s)

    def others(self, shown: Collection[Candidate]) -> list[Candidate]:
        """The candidates of other degrees than those of the plans that are ``shown``, the fastest first."""
        taken = {degrees(each) for each in shown}
        left = (each for key, each in self.by_degrees.items() if key not in taken)
        return sorted(left, key=lambda each: each.step_time_s)
