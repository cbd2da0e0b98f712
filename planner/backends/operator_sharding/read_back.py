"""What does an emitted folder say?  ``sharding.json`` is the file that the runtime itself reads."""

from __future__ import annotations

from collections.abc import Mapping

from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.operator_sharding.emit import PLAN_FILE
from planner.errors import DocumentInvalid
from planner.shard.read_sharding_plan import read_sharding_plan
from planner.shard.sharding_plan import ShardingPlan


def read_back(files: Mapping[str, str]) -> ShardingPlan:
    """The plan of a folder's files.  Raises DocumentInvalid when they do not hold together."""
    for name in (PLAN_FILE, LAUNCH_SCRIPT):
        if name not in files:
            raise DocumentInvalid(f"{name} is missing", where=name, hint="emit the plan again")
    plan = read_sharding_plan(files[PLAN_FILE], PLAN_FILE)
    started = read_world_size(files[LAUNCH_SCRIPT])
    if started != plan.num_devices:
        raise DocumentInvalid(
            f"{LAUNCH_SCRIPT} starts {started} ranks, the plan has {plan.num_devices}",
            where=LAUNCH_SCRIPT,
            hint="emit the plan again",
        )
    return plan
