"""How long and how broadly to search, and what a caller hears while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """``top_k`` alternatives that differ in their degrees; ``time_limit_s`` None = until proved.

    ``seed`` is part of the contract of reproducibility; the search uses no randomness.
    ``stop``: asked often while searching; True ends the search as an expired time limit does, best plan and bound kept.
    ``compare``: whether every back-end that was asked gets an answer of its own, or only the fastest one counts.
    ``processes``: 2 lets parts run beside each other (``planner.search.beside``); the answer is the same.
    """

    top_k: int = 3
    time_limit_s: float | None = None
    seed: int = 0
    stop: Callable[[], bool] | None = None
    compare: bool = True
    processes: int = 1


@dataclass(slots=True)
class Incumbent:
    """The fastest plan found so far, over all searches that share this."""

    step_time_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """A snapshot of a running search."""

    phase: str
    bounded: int
    evaluated: int
    incumbent_s: float | None
    lower_bound_s: float | None


Progress = Callable[[SearchProgress], None]
"""May raise to cancel: the search stops at once and the exception goes to the caller."""
