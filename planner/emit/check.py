"""Is a directory still what we emitted, and would its back-end accept it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner.emit.assemble import PLAN_JSON
from planner.emit.catalogue import TargetModule, target_module
from planner.emit.emission import Finding
from planner.emit.layout import layout_of
from planner.emit.write import changed_files, read_manifest
from planner.errors import MeshwrightError
from planner.plan import Plan
from planner.strategy import Strategy

_OURS = "docs: meshwright check"


def check_directory(path: Path) -> list[Finding]:
    """Every finding at once; an empty list means that the directory is intact and obeys the target's rules.

    Checks: every file of the manifest is there with its hash; ``plan.json`` is a plan with the manifest's id; reading
    the target's files back gives that plan's strategy and layout; every rule of the target holds.

    Raises DocumentInvalid when there is no manifest, NotFound when its target is unknown to this version.
    """
    data = read_manifest(path)
    target = target_module(str(data.get("target")))
    findings = [
        Finding("emission.hash", f"{change}: not as it was emitted", _OURS, str(path))
        for change in changed_files(path, data)
        if not change.endswith("(added)")
    ]
    plan = _load_plan(path, data, findings)
    if plan is None:
        return findings
    findings += _read_back(path, data, target, plan)
    for rule in target.rules():
        message = rule.check(plan)
        if message is not None:
            findings.append(Finding(rule.id, message, rule.source, str(path)))
    return findings


def _load_plan(path: Path, data: dict[str, Any], findings: list[Finding]) -> Plan | None:
    """The plan of the directory; appends a finding and returns None when there is none."""
    where = path / PLAN_JSON
    try:
        plan = Plan.model_validate(json.loads(where.read_text(encoding="utf-8")))
        _demand_positive(plan.chosen())
    except (OSError, ValueError, ValidationError, KeyError, TypeError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        findings.append(Finding("emission.plan", f"{PLAN_JSON} is not a plan: {reason}", _OURS, str(where)))
        return None
    if plan.plan_id != data.get("plan_id"):
        findings.append(
            Finding("emission.plan", f"{PLAN_JSON} is not the plan that the manifest names", _OURS, str(where))
        )
    return plan


def _demand_positive(strategy: Strategy) -> None:
    """Rules divide by degrees, so an edited plan must not bring zeros or text.  Raises ValueError."""
    for name in ("tp", "cp", "ep", "etp", "pp", "vpp", "dp_replicate", "dp_shard", "micro_batch_size"):
        value = getattr(strategy, name)
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"strategy/{name} is {value!r}, not a positive number")


def _read_back(path: Path, data: dict[str, Any], target: TargetModule, plan: Plan) -> list[Finding]:
    files = {}
    for name in data["files"]:
        try:
            files[name] = (path / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    try:
        strategy, layout = target.read_back(files)
    except MeshwrightError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return [Finding("emission.read_back", f"{error.what}{hint}", _OURS, error.where or str(path))]
    said, meant = strategy.to_dict(), plan.chosen().to_dict()
    findings = [
        Finding(
            "emission.read_back", f"the files say {name}={said[name]}, the plan {name}={meant[name]}", _OURS, str(path)
        )
        for name in meant
        if said[name] != meant[name]
    ]
    for read, wanted in zip(layout, layout_of(plan), strict=False):
        if read != wanted:
            message = f"the files place other layers, recompute or offload on stage {wanted.stage} than the plan"
            findings.append(Finding("emission.read_back", message, _OURS, str(path)))
    if len(layout) != len(plan.stages):
        message = f"the files make {len(layout)} stages, the plan {len(plan.stages)}"
        findings.append(Finding("emission.read_back", message, _OURS, str(path)))
    return findings
