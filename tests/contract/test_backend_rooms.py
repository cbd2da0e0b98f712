"""Every room of the registry keeps the promises of a back-end: the checks that third parties run, each a test."""

from __future__ import annotations

import pytest

from planner.backends.backend import Software
from planner.backends.registry import OURS
from planner.evidence.conformance.checks import CHECKS, VERDICTS, Check, faults_of
from planner.evidence.conformance.questions import questions
from planner.question.problem import Problem
from tests.sampling import drawn, runs_whole

ROOMS = [Software(each, release) for each in OURS for release in each.releases]
QUESTIONS = 3
"""Of a room's ten or fewer, in a quick run; the first, which every room has a plan of, is among them."""


def asked(wanted: Software) -> dict[int, Problem]:
    """The questions of this run by their numbers."""
    every = questions(wanted)
    return {number: every[number] for number in drawn(range(len(every)), QUESTIONS, kept=[0] if every else [])}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("wanted", ROOMS, ids=lambda wanted: wanted.spelled)
def test_a_room_keeps_its_promise(wanted: Software, check: Check) -> None:
    # A quick run asks the validators about the first plan of each question: one answer of maxtext takes seconds.
    assert faults_of(check, wanted, asked(wanted), verdicts=VERDICTS if runs_whole() else 1) == ()
