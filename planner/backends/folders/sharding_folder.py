"""Checks that the folder of a sharding plan is still what we emitted."""

from __future__ import annotations

from collections.abc import Mapping

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.emission.emission import Finding
from planner.backends.emission.write import changed_files
from planner.backends.folders.edits import edited_keys
from planner.backends.launch.settings import LaunchSettings
from planner.backends.operator_sharding.emit import OPERATOR_SHARDING, PLAN_FILE, emit_sharding, read_back
from planner.backends.operator_sharding.plan_parts import changed_parts
from planner.errors import DocumentInvalid, MeshwrightError
from planner.shard.read_sharding_plan import read_sharding_plan
from profiles.catalogue import load_cluster

__all__ = ["OPERATOR_SHARDING", "sharding_findings"]
_OURS = "docs: meshwright check"


def sharding_findings(folder: EmittedFolder) -> list[Finding]:
    """Every finding at once: files that changed and where, a plan that is none or another, other ranks."""
    findings = []
    expected: Mapping[str, str] | None = None
    for name, state in changed_files(folder.path, dict(folder.manifest)):
        if state == "added":
            continue
        keys: tuple[str, ...] = ()
        if state == "edited" and name == PLAN_FILE:
            keys = changed_parts(folder.manifest.get("plan_parts") or {}, folder.files.get(name, ""))
        elif state == "edited" and name in folder.files:
            expected = _expected_files(folder) if expected is None else expected
            keys = edited_keys(name, expected[name], folder.files[name]) if name in expected else ()
        text = f"{name} ({state}): not as it was emitted" + "".join(f"; {each}" for each in keys)
        findings.append(Finding("emission.edited", text, _OURS, str(folder.path / name)))
    try:
        plan = read_back(folder.files)
    except DocumentInvalid as error:
        return [*findings, Finding("emission.read_back", error.what, _OURS, str(folder.path / (error.where or "")))]
    if plan.plan_id != folder.manifest.get("plan_id"):
        text = f"{PLAN_FILE} is not the plan that the manifest names"
        findings.append(Finding("emission.plan", text, _OURS, str(folder.path / PLAN_FILE)))
    return findings


def _expected_files(folder: EmittedFolder) -> Mapping[str, str]:
    """What is emitted today for the plan of the folder; empty where its plan or its cluster cannot be read."""
    try:
        plan = read_sharding_plan(folder.files[PLAN_FILE], PLAN_FILE)
        cluster = load_cluster(plan.cluster, plan.num_devices)
        settings = LaunchSettings.from_dict(folder.manifest.get("launch") or {})
        return emit_sharding(plan, cluster, folder.manifest["launcher"], settings).files
    except (MeshwrightError, ValueError, KeyError, TypeError):
        return {}
