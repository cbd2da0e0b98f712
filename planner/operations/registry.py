"""Every operation, in the order of the pages that list them."""

from __future__ import annotations

from typing import Any

from planner.operations.backends import LIST_BACKENDS
from planner.operations.clusters import GET_CLUSTER, LIST_CLUSTERS
from planner.operations.devices import GET_DEVICE, LIST_DEVICES
from planner.operations.diagnosis import DIAGNOSIS
from planner.operations.diff import DIFF
from planner.operations.drawings import LEANING, MESH, REPORT, STEP, TIMELINE
from planner.operations.emit import EMIT
from planner.operations.estimate import ESTIMATE
from planner.operations.explain import EXPLAIN
from planner.operations.fleet import FLEET
from planner.operations.goodput import GOODPUT
from planner.operations.labels import DELETE_LABEL, GET_LABEL, LIST_LABELS, PUT_LABEL
from planner.operations.memory import MEMORY
from planner.operations.models import GET_MODEL, LIST_MODELS
from planner.operations.operation import Operation
from planner.operations.placement import PLACEMENT
from planner.operations.plan import PLAN
from planner.operations.plans import DELETE_PLAN, GET_PLAN, LIST_PLANS
from planner.operations.pools import POOLS
from planner.operations.replan import REPLAN
from planner.operations.rl import RL_ESTIMATE, RL_PLAN
from planner.operations.script import READ_SCRIPT
from planner.operations.sensitivity import SENSITIVITY
from planner.operations.serving import SERVING_ESTIMATE, SERVING_PLAN
from planner.operations.sweep import SWEEP
from planner.operations.throughput import THROUGHPUT
from planner.operations.towers import TOWERS

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    PLAN,
    POOLS,
    TOWERS,
    RL_PLAN,
    RL_ESTIMATE,
    ESTIMATE,
    READ_SCRIPT,
    THROUGHPUT,
    FLEET,
    SWEEP,
    SERVING_PLAN,
    SERVING_ESTIMATE,
    GET_PLAN,
    LIST_PLANS,
    DELETE_PLAN,
    EXPLAIN,
    SENSITIVITY,
    GOODPUT,
    DIFF,
    REPLAN,
    PLACEMENT,
    DIAGNOSIS,
    EMIT,
    TIMELINE,
    STEP,
    MESH,
    MEMORY,
    LEANING,
    REPORT,
    PUT_LABEL,
    GET_LABEL,
    LIST_LABELS,
    DELETE_LABEL,
    LIST_MODELS,
    GET_MODEL,
    LIST_CLUSTERS,
    GET_CLUSTER,
    LIST_DEVICES,
    GET_DEVICE,
    LIST_BACKENDS,
)
