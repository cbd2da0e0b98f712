"""Checks that a directory is still what we emitted, and that its back-end would accept it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from planner.backends.backend import Files, Software
from planner.backends.checking.emitted import EmittedFolder, read_folder
from planner.backends.emission.emission import PLAN_JSON, Finding
from planner.backends.emission.layout import layout_of
from planner.backends.emission.write import MANIFEST, changed_files
from planner.backends.folders.edits import edited_keys, expected_files
from planner.backends.folders.sharding_folder import OPERATOR_SHARDING, sharding_findings
from planner.backends.registry import backend, files_of
from planner.backends.rules.rule import rule_input
from planner.errors import MeshwrightError
from planner.plan.plan import Plan
from planner.question.problem import UNRESTRICTED
from planner.strategy.strategy import Strategy

_OURS = "docs: meshwright check"


def check_directory(path: Path) -> list[Finding]:
    """Every finding of tier 1 about a directory.

    Raises DocumentInvalid when there is no manifest, NotFound when its back-end is unknown to this version.
    """
    return folder_findings(read_folder(path))


def folder_findings(folder: EmittedFolder) -> list[Finding]:
    """Every finding at once; an empty list means that the folder is intact and obeys the back-end's rules.

    Checks: every file of the manifest is there with its hash, and if not, which keys differ; ``plan.json`` is a plan
    with the manifest's id, of its back-end and release; reading the files back gives that plan's strategy and layout;
    every rule of the back-end holds.
    """
    if folder.backend == OPERATOR_SHARDING:
        return sharding_findings(folder)
    written = backend(folder.backend, where=str(folder.path))
    files = files_of(Software(written, written.releases[0]))
    findings = _edits(folder)
    plan = _load_plan(folder, findings)
    if plan is None:
        return findings
    findings += _software(folder, plan)
    findings += _read_back(folder, files, plan)
    release = written.release(str(folder.manifest.get("release"))) or written.releases[0]
    broken = release.space.rules.violations(rule_input(plan))
    return findings + [replace(each, where=str(folder.path)) for each in broken]


def _edits(folder: EmittedFolder) -> list[Finding]:
    """Files that are not as they were emitted, with the keys that differ where the plan can be emitted again."""
    findings = []
    expected: Mapping[str, str] | None = None
    for name, state in changed_files(folder.path, dict(folder.manifest)):
        if state == "added":
            continue
        where, keys = str(folder.path / name), ""
        if state == "edited" and name in folder.files:
            expected = expected_files(folder) if expected is None else expected
            found = edited_keys(name, expected[name], folder.files[name]) if name in expected else ()
            keys = "".join(f"; {each}" for each in found)
        findings.append(Finding("emission.edited", f"{name} ({state}): not as it was emitted{keys}", _OURS, where))
    return findings


def _load_plan(folder: EmittedFolder, findings: list[Finding]) -> Plan | None:
    """The plan of the folder; appends a finding and returns None when there is none."""
    where = folder.path / PLAN_JSON
    try:
        plan = folder.plan()
        _demand_positive(plan.chosen())
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        findings.append(Finding("emission.plan", f"{PLAN_JSON} is not a plan: {reason}", _OURS, str(where)))
        return None
    if plan.plan_id != folder.manifest.get("plan_id"):
        findings.append(
            Finding("emission.plan", f"{PLAN_JSON} is not the plan that the manifest names", _OURS, str(where))
        )
    return plan


def _software(folder: EmittedFolder, plan: Plan) -> list[Finding]:
    """Whether plan and manifest name the same back-end and release.

    A plan of version 1 was written for a target that it did not name, and says no release: nothing to compare.  A plan
    of the unrestricted space names no software; whether the files' back-end can run it, its rules say.
    """
    if "projections" in folder.manifest or plan.backend == UNRESTRICTED:
        return []
    release = str(folder.manifest.get("release"))
    if plan.backend == folder.backend and plan.release in ("", release):
        return []
    mine, theirs = f"{plan.backend} {plan.release}".strip(), f"{folder.backend} {release}"
    message = (
        f"{PLAN_JSON} is a plan for {mine}, {MANIFEST} says that the files are for {theirs}; one of the two was edited:"
        f" put it back, or emit the plan again"
    )
    return [Finding("emission.backend", message, _OURS, f"{folder.path / PLAN_JSON}, {folder.path / MANIFEST}")]


def _demand_positive(strategy: Strategy) -> None:
    """Rules divide by degrees, so an edited plan must not bring zeros or text.  Raises ValueError."""
    for name in ("tp", "cp", "ep", "etp", "pp", "vpp", "dp_replicate", "dp_shard", "micro_batch_size"):
        value = getattr(strategy, name)
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"strategy/{name} is {value!r}, not a positive number")


def _read_back(folder: EmittedFolder, files: Files, plan: Plan) -> list[Finding]:
    path = folder.path
    try:
        strategy, layout = files.read(folder.files)
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
