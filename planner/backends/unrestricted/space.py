"""Every strategy that makes sense at all (``planner.backends.rules.legality``)."""

from __future__ import annotations

from planner.backends.backend import Space
from planner.backends.rules.columns import Columns
from planner.backends.rules.rule import RuleTable
from planner.strategy.schedules import SCHEDULE_NAMES

SPACE = Space(columns=Columns(schedules=SCHEDULE_NAMES, empty_ends=True), rules=RuleTable("unrestricted", (), ()))
