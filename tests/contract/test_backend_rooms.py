"""Every room of the registry keeps the promises of a back-end: the checks that third parties run, each a test."""

from __future__ import annotations

from functools import cache

import pytest

from planner.backends.backend import Software
from planner.backends.registry import OURS
from planner.evidence.conformance.checks import CHECKS, VERDICTS, Check, Tried, faults_of
from planner.evidence.conformance.questions import questions
from tests.sampling import drawn, runs_whole

ROOMS = [Software(each, release) for each in OURS for release in each.releases]
QUESTIONS = 2
"""Of a room's ten or fewer, in a quick run; the first, which every room has a plan of, is among them."""


@cache
def tried(number: int) -> Tried:
    """A room's questions of this run by their numbers; its checks share the plans that are drawn of them."""
    every = questions(ROOMS[number])
    asked = {place: every[place] for place in drawn(range(len(every)), QUESTIONS, kept=[0] if every else [])}
    # A quick run asks the validators about the first plan of each question: one answer of maxtext takes seconds.
    return Tried(ROOMS[number], asked, VERDICTS if runs_whole() else 1)


@pytest.mark.budget(90)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("number", range(len(ROOMS)), ids=lambda number: ROOMS[number].spelled)
def test_a_room_keeps_its_promise(number: int, check: Check) -> None:
    assert faults_of(check, ROOMS[number], tried(number)) == ()
