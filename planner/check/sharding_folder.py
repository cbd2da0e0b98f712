"""Is the folder of a sharding plan still what we emitted?"""

from __future__ import annotations

from planner.check.emitted import EmittedFolder
from planner.emit.emission import Finding
from planner.emit.operator_sharding.emit import PLAN_FILE, TARGET
from planner.emit.operator_sharding.read_back import read_back
from planner.emit.write import changed_files
from planner.errors import DocumentInvalid

__all__ = ["TARGET", "sharding_findings"]
_OURS = "docs: meshwright check"


def sharding_findings(folder: EmittedFolder) -> list[Finding]:
    """Every finding at once: files that changed, a plan that is none or another, a launcher of other ranks."""
    findings = [
        Finding("emission.edited", f"{name} ({state}): not as it was emitted", _OURS, str(folder.path / name))
        for name, state in changed_files(folder.path, dict(folder.manifest))
        if state != "added"
    ]
    try:
        plan = read_back(folder.files)
    except DocumentInvalid as error:
        return [*findings, Finding("emission.read_back", error.what, _OURS, str(folder.path / (error.where or "")))]
    if plan.plan_id != folder.manifest.get("plan_id"):
        text = f"{PLAN_FILE} is not the plan that the manifest names"
        findings.append(Finding("emission.plan", text, _OURS, str(folder.path / PLAN_FILE)))
    return findings
