"""What the prediction of a run that is started says of a model for which the back-end's files have no word."""

from __future__ import annotations

from planner.backends.asked import inside
from planner.backends.backend import Software
from planner.question.problem import Problem
from planner.search.backend_rules import BackEndRules
from planner.strategy.strategy import Strategy


def model_notes(problem: Problem, software: Software, strategy: Strategy) -> tuple[str, ...]:
    """One line for each rule about the model that is broken; nothing for a plan of the search, which obeys them."""
    return tuple(
        f"predicted as the run builds its model; no files can be written for it, since {rule}"
        for rule in BackEndRules(inside(problem, software)).not_buildable(strategy)
    )
