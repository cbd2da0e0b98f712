"""Every operation, in the order of the pages that list them."""

from __future__ import annotations

from typing import Any

from planner.operations.diff import DIFF
from planner.operations.drawings import LEANING, MESH, REPORT, STEP, TIMELINE
from planner.operations.explain import EXPLAIN
from planner.operations.labels import GET_LABEL, PUT_LABEL
from planner.operations.memory import MEMORY
from planner.operations.operation import Operation
from planner.operations.plans import GET_PLAN, LIST_PLANS
from planner.operations.sensitivity import SENSITIVITY

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    GET_PLAN,
    LIST_PLANS,
    EXPLAIN,
    SENSITIVITY,
    DIFF,
    TIMELINE,
    STEP,
    MESH,
    MEMORY,
    LEANING,
    REPORT,
    PUT_LABEL,
    GET_LABEL,
)
