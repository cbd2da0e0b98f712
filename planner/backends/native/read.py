"""Reads the emitted files: ``plan.json`` is the file that the trainer itself reads."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import ValidationError

from planner.backends.emission.emission import PLAN_JSON
from planner.backends.emission.layout import Layout, layout_of
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.errors import DocumentInvalid
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy


def read_back(files: Mapping[str, str]) -> tuple[Strategy, Layout]:
    """Strategy and layout of an emission's files.  Raises DocumentInvalid when they do not hold together."""
    for name in (PLAN_JSON, LAUNCH_SCRIPT):
        if name not in files:
            raise DocumentInvalid(f"{name} is missing", where=name, hint="emit the plan again")
    try:
        plan = Plan.model_validate(json.loads(files[PLAN_JSON]))
        strategy = plan.chosen()
    except (ValueError, ValidationError, KeyError, TypeError, RecursionError) as error:
        raise DocumentInvalid(
            f"not a plan: {str(error).splitlines()[0]}", where=PLAN_JSON, hint="emit the plan again"
        ) from error
    started = read_world_size(files[LAUNCH_SCRIPT])
    if started != strategy.world_size:
        raise DocumentInvalid(
            f"{LAUNCH_SCRIPT} starts {started} ranks, the plan has {strategy.world_size}",
            where=LAUNCH_SCRIPT,
            hint="emit the plan again",
        )
    return strategy, layout_of(plan)
