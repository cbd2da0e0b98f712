"""The option ``--backend`` of ``pytest -p planner.evidence.conformance.option --pyargs planner.evidence.conformance``.

A plugin that is named, not one that is found: pytest reads an option before it looks into a package, and an entry point
would give every test run of the environment an option that its own plugins may have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take ``--backend NAME[==RELEASE]``, several times or separated by commas."""
    parser.addoption("--backend", action="append", metavar="NAME[==RELEASE]", help="whose room is checked")
