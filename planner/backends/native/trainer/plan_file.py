"""Checks that this launch can run a plan file: each refusal is one clear error, before any process group exists."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from planner.backends.native.space import violations
from planner.backends.native.trainer.rank_command import require_world_size
from planner.backends.rules.rule import rule_input
from planner.errors import BackEndRefused, DocumentInvalid, NotFound
from planner.plan.plan import Plan


def load_plan(path: Path) -> Plan:
    """Read one plan document.  Raises NotFound or DocumentInvalid."""
    try:
        plan = Plan.model_validate(json.loads(path.read_text(encoding="utf-8")))
        plan.chosen()
    except FileNotFoundError as error:
        raise NotFound(f"no plan file {path}", where=str(path)) from error
    except (OSError, ValueError, ValidationError, KeyError, TypeError, RecursionError) as error:
        raise DocumentInvalid(
            f"not a plan: {str(error).splitlines()[0]}",
            where=str(path),
            hint="use the plan.json that `meshwright emit --backend native` wrote",
        ) from error
    return plan


def check_world_size(plan: Plan, world_size: int) -> None:
    """Raise DocumentInvalid unless exactly as many processes run as the plan has ranks."""
    require_world_size(plan.chosen().world_size, world_size, f"{world_size} devices")


def refuse_unrunnable(plan: Plan) -> None:
    """Raise BackEndRefused with every rule of the native trainer that the plan breaks."""
    findings = violations(rule_input(plan))
    if findings:
        raise BackEndRefused(
            "the native trainer cannot run this plan: " + "; ".join(f"[{f.rule}] {f.message}" for f in findings),
            hint="plan for it: `meshwright plan --backend native`",
        )
