"""A candidate in the words of its back-end: switches that mean nothing get the spelling that its files give back."""

from __future__ import annotations

from planner.predict.candidate import Candidate
from planner.predict.cost.hardware import Hardware
from planner.question.problem import Problem
from planner.search.backend_rules import BackEndRules
from planner.search.evaluate import evaluate_split
from planner.search.row_context import strategy_context


def as_spelled(problem: Problem, hardware: Hardware, candidate: Candidate) -> Candidate:
    """The same candidate as its back-end spells it, costed as it is spelled."""
    strategy = BackEndRules(problem).spelled(candidate.strategy, candidate.split.chunk_layers)
    if strategy == candidate.strategy:
        return candidate
    return evaluate_split(strategy_context(problem, hardware, strategy), candidate.split)
