"""Every check of every release as a test.

    pytest -p planner.evidence.conformance.option --pyargs planner.evidence.conformance --backend NAME

Not among the tests of the repository, which run the same checks in ``tests/contract``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.backends.backend import Software
from planner.evidence.conformance.checks import CHECKS, Check, asked, faults_of

if TYPE_CHECKING:
    import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a release and check."""
    given: list[str] = metafunc.config.getoption("--backend", default=None) or []
    wanted = asked([name for text in given for name in text.split(",")])
    pairs = [(each, check) for each in wanted for check in CHECKS]
    names = [f"{each.spelled}-{check.__name__}" for each, check in pairs]
    metafunc.parametrize(("wanted", "check"), pairs, ids=names)


def test_the_room_keeps_its_promise(wanted: Software, check: Check) -> None:
    """One check finds no fault."""
    faults = faults_of(check, wanted)
    assert not faults, "\n".join((f"{wanted.spelled}, {check.__name__}: {check.__doc__}", *faults[:10]))
