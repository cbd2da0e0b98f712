"""Every room of the registry keeps the promises of a back-end: the checks that third parties run, each a test."""

from __future__ import annotations

import pytest

from planner.backends.backend import Software
from planner.backends.registry import OURS
from planner.evidence.conformance.checks import CHECKS, Check, faults_of

ROOMS = [Software(each, release) for each in OURS for release in each.releases]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("wanted", ROOMS, ids=lambda wanted: wanted.spelled)
def test_a_room_keeps_its_promise(wanted: Software, check: Check) -> None:
    assert faults_of(check, wanted) == ()
