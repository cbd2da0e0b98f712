"""Are the names that the command line shows those of the frameworks?"""

from __future__ import annotations

from planner.framework.known import FRAMEWORKS
from planner.framework.names import FRAMEWORK_NAMES


def test_the_names_are_the_frameworks_in_their_order() -> None:
    assert tuple(FRAMEWORKS) == FRAMEWORK_NAMES
