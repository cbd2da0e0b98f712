"""Before any search: can a question have a plan, and how fast can it be at most?

The bounds are the search's own first ones, of whole families of strategies (``planner.search.core_waves``): no strategy
of a back-end's space is faster, and where no family can hold the model none of its members does.  They cost some
milliseconds a back-end, so that a page can say them while somebody types.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from planner.backends.asked import asked_software, inside, problem_hardware
from planner.backends.backend import Software
from planner.errors import MeshwrightError
from planner.question.problem import Problem
from planner.search.backend_rules import BackEndRules
from planner.search.bound import BoundTerms
from planner.search.branch import Search
from planner.search.core_waves import core_bounds
from planner.search.memory_bound import lower_bounds_s
from planner.search.options import SearchOptions
from planner.strategy.rows import StrategyRows
from profiles.document import Document

MOST_FAMILIES = 20_000
"""Families of strategies of one back-end that are bounded at once; more take more than a tenth of a second."""
MOST_CLOSER = 60
"""Where so few families can hold the model, their members are bounded too: they are what the answer hangs on."""


class BackEndBound(Document):
    """What the bounds say of one back-end."""

    backend: str
    release: str
    may_fit: bool | None = Field(description="false = no strategy fits; null = too many strategies to tell at once")
    least_step_s: float | None = Field(default=None, description="no strategy is faster; null = none fits, or unknown")


class ProblemBounds(Document):
    """Whether a question can have a plan, and how fast one can be, without a search."""

    schema_version: Literal[1] = 1
    may_fit: bool | None = Field(description="false = no plan fits; true = the bounds allow one; null = not told")
    least_step_s: float | None = Field(default=None, description="no plan is faster; null = none fits, or not told")
    backends: tuple[BackEndBound, ...] = Field(description="those that can run the question, the fastest bound first")


def problem_bounds(problem: Problem) -> ProblemBounds:
    """The bounds of every back-end that is asked, and of the question."""
    found = [bound for each in asked_software(problem) if (bound := _bound(problem, each)) is not None]
    found.sort(key=lambda each: (each.may_fit is False, each.least_step_s or 0.0))
    told = [each for each in found if each.may_fit is not None]
    if any(each.may_fit for each in told):
        whole = len(told) == len(found)
        least_s = min(each.least_step_s for each in told if each.least_step_s is not None)
        return ProblemBounds(may_fit=True, least_step_s=least_s if whole else None, backends=tuple(found))
    if not told or len(told) < len(found):
        return ProblemBounds(may_fit=None, backends=tuple(found))
    return ProblemBounds(may_fit=False, backends=tuple(found))


def _bound(problem: Problem, software: Software) -> BackEndBound | None:
    """Of one back-end; None where it can run nothing of the question."""
    own = inside(problem, software)
    try:
        if BackEndRules(own).always():
            return None
        search = Search(own, problem_hardware(own), SearchOptions())
        cores = search.space.cores
    except MeshwrightError:
        # It has no strategy for this model or these devices; the search says why.
        return None
    bound = BackEndBound(backend=software.name, release=software.release.version, may_fit=None)
    if len(cores) > MOST_FAMILIES:
        return bound
    if not len(cores):
        # None is legal on so many devices.
        return bound.model_copy(update={"may_fit": False})
    limit = search.rules.limit_bytes
    seconds = core_bounds(search.costs, cores, search.costs.keyed(cores), limit)
    near = np.flatnonzero(np.isfinite(seconds))
    least_s = float(np.min(seconds, initial=np.inf))
    if 0 < len(near) <= MOST_CLOSER:
        least_s = _closer(search, cores.take(near), limit, least_s)
    fits = bool(np.isfinite(least_s))
    return bound.model_copy(update={"may_fit": fits, "least_step_s": least_s if fits else None})


def _closer(search: Search, cores: StrategyRows, limit_bytes: float, known_s: float) -> float:
    """The least bound of the members of some families, in seconds; ``known_s`` where they are too many."""
    space = search.space
    rows, key = space.layouts(cores, np.zeros(len(cores), dtype=np.int64))
    if len(rows) > MOST_FAMILIES:
        return known_s
    rows, key = space.shardings(rows, key)
    if len(rows) > MOST_FAMILIES:
        return known_s
    rows = space.leaves(rows, key)[0]
    if not 0 < len(rows) <= MOST_FAMILIES:
        return known_s if len(rows) else float("inf")
    terms = BoundTerms(search.costs, rows, search.costs.rows(rows))
    return max(known_s, float(np.min(lower_bounds_s(terms, limit_bytes), initial=np.inf)))
